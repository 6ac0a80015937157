package helenus.tests;

import com.scylladb.cdc.lib.CDCConsumer;
import com.scylladb.cdc.model.worker.RawChange;
import com.scylladb.cdc.model.worker.RawChangeConsumer;
import java.net.InetSocketAddress;
import java.util.concurrent.CompletableFuture;

/**
 * Reads captured changes by scylla-cdc-java, and prints each change as a line of JSON, until it is ended.
 *
 * <p>usage: Reader HOST PORT KEYSPACE TABLE
 */
public final class Reader {
    private Reader() {}

    private static CompletableFuture<Void> print(RawChange change) {
        Object time = change.getId().getChangeTime().getUUID();
        System.out.printf(
                "{\"operation\": %d, \"time\": \"%s\", \"pk\": %s, \"v\": %s}%n",
                change.getOperationType().ordinal(), time, change.getAsObject("pk"), change.getAsObject("v"));
        System.out.flush();
        return CompletableFuture.completedFuture(null);
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 4) {
            System.err.println("usage: Reader HOST PORT KEYSPACE TABLE");
            System.exit(2);
        }
        RawChangeConsumer consumer = Reader::print;
        CDCConsumer reader =
                CDCConsumer.builder()
                        .addContactPoint(new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1])))
                        .addTable(arguments[2], arguments[3])
                        .withConsumerProvider(thread -> consumer)
                        .withWorkersCount(1)
                        .withQueryTimeWindowSizeMs(5000)
                        .withConfidenceWindowSizeMs(1000)
                        .withMinimalWaitForWindowMs(200)
                        .withSleepAfterExceptionMs(200)
                        .withSleepBeforeGenerationDoneMs(1000)
                        .build();
        reader.start();
        Thread.currentThread().join();
    }
}
