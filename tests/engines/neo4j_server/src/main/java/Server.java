import java.nio.file.Path;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;
import org.neo4j.io.ByteUnit;

/** Serves Bolt on a loopback port from a data folder, until it is killed or its standard input ends. */
public final class Server {
    private Server() {}

    /** Arguments: folder, port, "auth" or "open", and a file of settings. Prints "ready" once it answers. */
    public static void main(String[] arguments) throws Exception {
        var address = new SocketAddress("127.0.0.1", Integer.parseInt(arguments[1]));
        var service = new DatabaseManagementServiceBuilder(Path.of(arguments[0]))
                .setConfig(BoltConnector.enabled, true)
                .setConfig(BoltConnector.listen_address, address)
                .setConfig(BoltConnector.advertised_address, address)
                .setConfig(GraphDatabaseSettings.auth_enabled, arguments[2].equals("auth"))
                .setConfig(GraphDatabaseSettings.pagecache_memory, ByteUnit.mebiBytes(64))
                .loadPropertiesFromFile(Path.of(arguments[3]))
                .build();
        Runtime.getRuntime().addShutdownHook(new Thread(service::shutdown));
        System.out.println("ready");
        // Whoever started it holds the other end: a test run that dies takes its server along.
        System.in.transferTo(System.err);
        System.exit(0);
    }
}
