import java.io.File;
import java.util.Random;
import org.apache.cassandra.io.sstable.CQLSSTableWriter;

/**
 * Writes SSTables of many small rows with the writer of Cassandra's jar. Arguments: the folder, the number of rows, and the compression.
 * The folder's name is that of the table.
 */
public class WriteRows
{
    private static final int ROWS_OF_PARTITION = 20;

    public static void main(String[] args) throws Exception
    {
        File folder = new File(args[0]);
        folder.mkdirs();
        String table = "moved." + folder.getName().split("-")[0];
        String schema = "CREATE TABLE " + table + " (device bigint, at timestamp, temperature double, state text, count int, place text,"
                        + " PRIMARY KEY (device, at)) WITH compression = " + args[2];
        String insert = "INSERT INTO " + table + " (device, at, temperature, state, count, place) VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ?";
        Random random = new Random(1);
        String[] states = { "idle", "running", "stopped for maintenance", "unknown" };
        try (CQLSSTableWriter writer = CQLSSTableWriter.builder().inDirectory(folder.getPath()).forTable(schema).using(insert).build())
        {
            for (long row = 0, rows = Long.parseLong(args[1]); row < rows; row++)
            {
                long device = row / ROWS_OF_PARTITION;
                writer.addRow(device, new java.util.Date(1_780_000_000_000L + row % ROWS_OF_PARTITION * 60_000), random.nextInt(1000) / 10.0,
                              states[random.nextInt(states.length)], random.nextInt(100_000), "hall " + device % 97 + ", rack " + random.nextInt(40),
                              1_780_000_000_000_000L + row);
            }
        }
        System.exit(0);
    }
}
