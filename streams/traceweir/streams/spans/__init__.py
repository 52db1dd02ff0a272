"""Import path of users: reads what agents did from their OpenTelemetry spans. Nothing in Traceweir imports it."""
