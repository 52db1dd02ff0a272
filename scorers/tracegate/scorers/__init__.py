"""What a trace is worth: one file per scorer, no Kafka, no network, no clock."""
