import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * Joins the sessions of the benchmark with Kafka Streams, exactly once, and prints the rate and the CPU time as JSON.
 *
 * <p>It does less than the assemble stage: it checks only that a record is JSON and has its ids, it remembers no closed
 * session, and it has no watermark. The first half of the records is not measured, because the JVM compiles then, and
 * neither is the last commit.
 *
 * <p>Arguments: servers, traces topic, invocations topic, sessions topic, state folder, records, sessions.
 */
public final class Assemble {
  private static final Duration LINGER = Duration.ofMillis(50);
  private static final String STORE = "sessions";
  private static final byte OPEN = 0, ENDED = 1;
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final OperatingSystemMXBean PROCESS =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  /** Counts what was done. Kafka Streams has one thread here, and the main thread reads after {@code done}. */
  private static final class Progress {
    final long records, unmeasured, sessions;
    final CountDownLatch done = new CountDownLatch(1);
    long read, closed, began, beganCpu, ended, endedCpu;
    Throwable failed;

    Progress(long records, long sessions) {
      this.records = records;
      this.sessions = sessions;
      unmeasured = records / 2;
    }

    void read() {
      if (read++ == unmeasured) {
        began = System.nanoTime();
        beganCpu = PROCESS.getProcessCpuTime();
      }
    }

    void closed() {
      if (++closed == sessions) {
        ended = System.nanoTime();
        endedCpu = PROCESS.getProcessCpuTime();
        done.countDown();
      }
    }

    String json() {
      double measured = records - unmeasured;
      double rate = measured / (ended - began) * 1e9;
      double cpu = (endedCpu - beganCpu) / measured / 1e3;
      return String.format(Locale.ROOT, "{\"rate\": %.1f, \"cpu_us\": %.3f}", rate, cpu);
    }
  }

  /** Keeps each open session as one value of a store, and forwards it when its linger is over. */
  private static final class Join implements Processor<byte[], byte[], byte[], byte[]> {
    private record Due(long at, String session) {}

    private final String traces;
    private final Progress progress;
    private final Deque<Due> due = new ArrayDeque<>();
    private ProcessorContext<byte[], byte[]> context;
    private KeyValueStore<Bytes, byte[]> open;

    Join(String traces, Progress progress) {
      this.traces = traces;
      this.progress = progress;
    }

    @Override
    public void init(ProcessorContext<byte[], byte[]> context) {
      this.context = context;
      open = context.getStateStore(STORE);
      try (KeyValueIterator<Bytes, byte[]> all = open.all()) { // sessions that ended before a restart
        while (all.hasNext()) {
          KeyValue<Bytes, byte[]> each = all.next();
          if (each.value[0] == ENDED) {
            due.add(new Due(0, new String(each.key.get(), StandardCharsets.UTF_8)));
          }
        }
      }
      context.schedule(LINGER, PunctuationType.WALL_CLOCK_TIME, this::close);
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
      progress.read();
      boolean trace = context.recordMetadata().orElseThrow().topic().equals(traces);
      JsonNode value = json(record.value());
      String session = required(trace ? value.path("metadata") : value, "session_id");
      byte[] id = required(value, trace ? "id" : "event_id").getBytes(StandardCharsets.UTF_8);
      Bytes key = bytes(session);
      byte[] kept = open.get(key);
      if (kept == null) {
        kept = new byte[] {OPEN};
      } else if (has(kept, id)) {
        return; // sent twice
      }
      int size = 1 + 4 + id.length + 4 + record.value().length;
      byte[] more = Arrays.copyOf(kept, kept.length + size);
      ByteBuffer.wrap(more, kept.length, size)
          .put((byte) (trace ? 1 : 0))
          .putInt(id.length)
          .put(id)
          .putInt(record.value().length)
          .put(record.value());
      if (!trace && value.path("type").asText().equals("session.ended")) {
        more[0] = ENDED;
        due.add(new Due(System.currentTimeMillis() + LINGER.toMillis(), session));
      }
      open.put(key, more);
    }

    private void close(long now) {
      while (!due.isEmpty() && due.peek().at() <= now) {
        String session = due.remove().session();
        Bytes key = bytes(session);
        context.forward(new Record<>(key.get(), joined(session, open.get(key)), now));
        open.delete(key);
        progress.closed();
      }
    }

    private static boolean has(byte[] kept, byte[] id) {
      ByteBuffer packed = ByteBuffer.wrap(kept, 1, kept.length - 1);
      while (packed.hasRemaining()) {
        packed.get();
        int size = packed.getInt();
        int at = packed.position();
        if (Arrays.equals(kept, at, at + size, id, 0, id.length)) {
          return true;
        }
        packed.position(at + size);
        int rest = packed.getInt();
        packed.position(packed.position() + rest);
      }
      return false;
    }

    private static byte[] joined(String session, byte[] kept) {
      ByteArrayOutputStream out = new ByteArrayOutputStream(kept.length + 200);
      try {
        out.write("{\"session_id\":".getBytes(StandardCharsets.UTF_8));
        out.write(JSON.writeValueAsBytes(session));
        String constants = ",\"segment\":0,\"revision\":0,\"closed_because\":\"session.ended\"";
        out.write(constants.getBytes(StandardCharsets.UTF_8));
        for (byte trace : new byte[] {0, 1}) {
          out.write((trace == 1 ? ",\"traces\":[" : ",\"events\":[").getBytes(StandardCharsets.UTF_8));
          writeRecords(out, kept, trace);
          out.write(']');
        }
        out.write('}');
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
      return out.toByteArray();
    }

    private static void writeRecords(ByteArrayOutputStream out, byte[] kept, byte trace) {
      ByteBuffer packed = ByteBuffer.wrap(kept, 1, kept.length - 1);
      boolean first = true;
      while (packed.hasRemaining()) {
        boolean written = packed.get() == trace;
        int id = packed.getInt();
        packed.position(packed.position() + id);
        int size = packed.getInt();
        int at = packed.position();
        if (written) {
          if (!first) {
            out.write(',');
          }
          out.write(kept, at, size);
          first = false;
        }
        packed.position(at + size);
      }
    }

    private static JsonNode json(byte[] value) {
      try {
        return JSON.readTree(value);
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }

    private static String required(JsonNode value, String field) {
      String text = value.path(field).asText();
      if (text.isEmpty()) {
        throw new IllegalArgumentException("a record of the load has no " + field);
      }
      return text;
    }

    private static Bytes bytes(String text) {
      return Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
    }
  }

  public static void main(String[] args) throws InterruptedException {
    String traces = args[1];
    Progress progress = new Progress(Long.parseLong(args[5]), Long.parseLong(args[6]));
    Topology topology =
        new Topology()
            .addSource("source", new ByteArrayDeserializer(), new ByteArrayDeserializer(), traces, args[2])
            .addProcessor("join", () -> new Join(traces, progress), "source")
            .addStateStore(store(), "join")
            .addSink("sink", args[3], new ByteArraySerializer(), new ByteArraySerializer(), "join");
    Properties settings = new Properties();
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[3] + "-assemble");
    settings.put(StreamsConfig.STATE_DIR_CONFIG, args[4]);
    settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 64L << 20); // more than all open sessions
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    KafkaStreams streams = new KafkaStreams(topology, settings);
    streams.setUncaughtExceptionHandler(
        error -> {
          progress.failed = error;
          progress.done.countDown();
          return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
    streams.start();
    boolean done = progress.done.await(120, TimeUnit.SECONDS);
    streams.close(Duration.ofSeconds(30)); // commits what is left
    if (progress.failed != null) {
      progress.failed.printStackTrace();
      System.exit(1);
    }
    if (!done) {
      System.err.printf("%d of %d sessions were closed after 120 s%n", progress.closed, progress.sessions);
      System.exit(1);
    }
    System.out.println(progress.json());
    System.exit(0);
  }

  private static StoreBuilder<KeyValueStore<Bytes, byte[]>> store() {
    return Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), Serdes.Bytes(), Serdes.ByteArray())
        .withCachingEnabled(); // one row of the changelog for each changed session and commit
  }
}
