import java.io.PrintStream;
import java.io.FileOutputStream;
import java.io.BufferedOutputStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.LivenessInfo;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.RangeTombstoneMarker;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.metadata.MetadataType;
import org.apache.cassandra.io.sstable.metadata.StatsMetadata;

/**
 * Prints SSTables with Cassandra's own classes, in the lines of the example `sstable_dump --lines` of the crate helenus-sstable.
 * Methods whose types differ between 3.11 and 5.0 are called by name. Arguments: the file to write, then files Data.db.
 */
public class SstableLines
{
    private static final long NO_TIME = Long.MAX_VALUE;

    private final PrintStream out;

    private SstableLines(PrintStream out)
    {
        this.out = out;
    }

    public static void main(String[] args) throws Exception
    {
        DatabaseDescriptor.toolInitialization();
        PrintStream out = new PrintStream(new BufferedOutputStream(new FileOutputStream(args[0]), 1 << 20), false, "UTF-8");
        for (String file : Arrays.asList(args).subList(1, args.length))
            new SstableLines(out).print(file);
        out.close();
        System.exit(0);
    }

    private void print(String file) throws Exception
    {
        Descriptor descriptor = descriptor(file);
        String name = new java.io.File(file).getName();
        out.println("F " + name.substring(0, name.length() - "-Data.db".length()));
        Object serializer = call(descriptor, "getMetadataSerializer");
        SerializationHeader.Component header =
            (SerializationHeader.Component) callWith(serializer, "deserialize", descriptor, MetadataType.HEADER);
        out.println("H key " + header.getKeyType());
        for (Object type : header.getClusteringTypes())
            out.println("H clustering " + type);
        columns("static", header.getStaticColumns());
        columns("regular", header.getRegularColumns());
        SSTableReader reader = reader(descriptor);
        stats(reader.getSSTableMetadata());
        try (ISSTableScanner scanner = reader.getScanner())
        {
            while (scanner.hasNext())
                try (UnfilteredRowIterator partition = scanner.next())
                {
                    partition(partition);
                }
        }
    }

    private static Descriptor descriptor(String file) throws Exception
    {
        for (Method method : Descriptor.class.getMethods())
            if (method.getName().equals("fromFilename") && Arrays.equals(method.getParameterTypes(), new Class<?>[]{ String.class }))
                return (Descriptor) method.invoke(null, new java.io.File(file).getCanonicalPath());
        Object path = Class.forName("org.apache.cassandra.io.util.File").getConstructor(String.class).newInstance(file);
        Object pair = Descriptor.class.getMethod("fromFileWithComponent", path.getClass(), boolean.class).invoke(null, path, false);
        return (Descriptor) pair.getClass().getField("left").get(pair);
    }

    private static SSTableReader reader(Descriptor descriptor) throws Exception
    {
        Class<?> tools;
        try
        {
            tools = Class.forName("org.apache.cassandra.tools.Util");
            tools.getMethod("metadataFromSSTable", Descriptor.class);
        }
        catch (NoSuchMethodException e)
        {
            tools = Class.forName("org.apache.cassandra.tools.SSTableExport");
        }
        Object metadata = tools.getMethod("metadataFromSSTable", Descriptor.class).invoke(null, descriptor);
        for (Method method : SSTableReader.class.getMethods())
        {
            if (!method.getName().equals("openNoValidation"))
                continue;
            Class<?>[] types = method.getParameterTypes();
            Class<?> last = types[types.length - 1];
            if (last.isInstance(metadata))
                return (SSTableReader) method.invoke(null, descriptor, metadata);
            if (!last.getSimpleName().equals("TableMetadataRef"))
                continue;
            Object reference = last.getMethod("forOfflineTools", metadata.getClass()).invoke(null, metadata);
            return (SSTableReader) (types.length == 2 ? method.invoke(null, descriptor, reference) : method.invoke(null, null, descriptor, reference));
        }
        throw new IllegalStateException("no way to open an SSTable is known");
    }

    private void columns(String kind, Map<ByteBuffer, ?> columns)
    {
        columns.forEach((name, type) -> out.println("H " + kind + " " + hex(name) + " " + type));
    }

    private void stats(StatsMetadata stats) throws Exception
    {
        out.println("S timestamp " + stats.minTimestamp + " " + stats.maxTimestamp);
        out.println("S deletion " + time(field(stats, "minLocalDeletionTime")) + " " + time(field(stats, "maxLocalDeletionTime")));
        out.println("S ttl " + stats.minTTL + " " + stats.maxTTL);
        out.println("S level " + stats.sstableLevel + " repaired " + stats.repairedAt);
        out.println("S cells " + stats.totalColumnsSet + " rows " + stats.totalRows);
    }

    private void partition(UnfilteredRowIterator partition) throws Exception
    {
        out.println("P " + hex(partition.partitionKey().getKey()) + " " + deletion(partition.partitionLevelDeletion()));
        if (!partition.staticRow().isEmpty())
            row("static", partition.staticRow());
        while (partition.hasNext())
        {
            Unfiltered unfiltered = partition.next();
            String clustering = clustering(unfiltered.clustering());
            if (unfiltered.isRow())
            {
                row(clustering, (Row) unfiltered);
                continue;
            }
            RangeTombstoneMarker marker = (RangeTombstoneMarker) unfiltered;
            out.println("M " + unfiltered.clustering().kind() + " " + clustering
                        + " " + (marker.isClose(false) ? deletion(marker.closeDeletionTime(false)) : "-")
                        + " " + (marker.isOpen(false) ? deletion(marker.openDeletionTime(false)) : "-"));
        }
        out.println("E");
    }

    private void row(String clustering, Row row) throws Exception
    {
        LivenessInfo liveness = row.primaryKeyLivenessInfo();
        String live = liveness.isEmpty() ? "-" : String.valueOf(liveness.timestamp());
        if (liveness.isExpiring())
            live += "," + liveness.ttl() + "," + time(call(liveness, "localExpirationTime"));
        Row.Deletion deletion = row.deletion();
        String deleted = deletion(deletion.time()) + (!deletion.isLive() && deletion.isShadowable() ? ",shadowable" : "");
        out.println("R " + clustering + " " + live + " " + deleted);
        for (Object data : (Iterable<?>) row)
        {
            if (data instanceof Cell)
            {
                cell((Cell) data);
                continue;
            }
            DeletionTime complex = (DeletionTime) call(data, "complexDeletion");
            if (!complex.isLive())
                out.println("X " + name(data) + " " + deletion(complex));
            for (Object cell : (Iterable<?>) data)
                cell((Cell) cell);
        }
    }

    private void cell(Cell cell) throws Exception
    {
        String kind = cell.isTombstone() ? "deleted," + time(call(cell, "localDeletionTime"))
                    : cell.isExpiring() ? cell.ttl() + "," + time(call(cell, "localDeletionTime")) : "live";
        Object value = call(cell, "value");
        if (!(value instanceof ByteBuffer))
            value = call(cell, "buffer");
        String path = cell.path() == null ? "-" : text(cell.path().get(0));
        out.println("C " + name(cell) + " " + path + " " + cell.timestamp() + " " + kind + " " + text((ByteBuffer) value));
    }

    private static String name(Object data) throws Exception
    {
        Object name = field(call(data, "column"), "name");
        return hex((ByteBuffer) field(name, "bytes"));
    }

    private static String clustering(Object clustering) throws Exception
    {
        StringBuilder text = new StringBuilder();
        Object values = call(clustering, "getRawValues");
        if (!(values instanceof ByteBuffer[]))
            values = call(clustering, "getBufferArray");
        for (ByteBuffer value : (ByteBuffer[]) values)
            text.append(text.length() == 0 ? "" : ",").append(value == null ? "null" : text(value));
        return text.length() == 0 ? "." : text.toString();
    }

    private static String deletion(DeletionTime deletion) throws Exception
    {
        return deletion.isLive() ? "-" : deletion.markedForDeleteAt() + "," + time(call(deletion, "localDeletionTime"));
    }

    /** Returns a time in seconds, whose type is int before 5.0. */
    private static String time(Object seconds)
    {
        long value = ((Number) seconds).longValue();
        boolean isNone = seconds instanceof Integer ? value == Integer.MAX_VALUE : value == NO_TIME;
        return isNone ? "none" : String.valueOf(value);
    }

    private static String text(ByteBuffer bytes)
    {
        return bytes.hasRemaining() ? hex(bytes) : "empty";
    }

    private static String hex(ByteBuffer bytes)
    {
        StringBuilder text = new StringBuilder();
        ByteBuffer copy = bytes.duplicate();
        while (copy.hasRemaining())
            text.append(String.format("%02x", copy.get()));
        return text.toString();
    }

    private static Object field(Object object, String name) throws Exception
    {
        return object.getClass().getField(name).get(object);
    }

    private static Object call(Object object, String name) throws Exception
    {
        return callWith(object, name);
    }

    private static Object callWith(Object object, String name, Object... arguments) throws Exception
    {
        for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass())
            for (Method method : type.getDeclaredMethods())
                if (method.getName().equals(name) && !method.isBridge() && accepts(method.getParameterTypes(), arguments))
                {
                    method.setAccessible(true);
                    return method.invoke(object, arguments);
                }
        for (Method method : object.getClass().getMethods())
            if (method.getName().equals(name) && accepts(method.getParameterTypes(), arguments))
            {
                method.setAccessible(true);
                return method.invoke(object, arguments);
            }
        throw new NoSuchMethodException(object.getClass() + " " + name);
    }

    private static boolean accepts(Class<?>[] types, Object[] arguments)
    {
        if (types.length != arguments.length)
            return false;
        for (int i = 0; i < types.length; i++)
            if (!types[i].isInstance(arguments[i]))
                return false;
        return true;
    }
}
