import ArgumentParser
import Foundation
import StockServer
import Strata
import UnixSignals

@main struct StockServerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stock-server", abstract: "Serves the stock of a small shop as JSON over HTTP.")

    @Option(help: "The host name or address to listen on.")
    var hostname = "127.0.0.1"
    @Option(help: "The port to listen on; 0 for a free one.")
    var port = 8080
    @Option(help: "The file of the store. It is created if it does not exist.")
    var store = "stock.strata"
    @Flag(help: "Answer before a save is on disk. A crash can then lose the last second.")
    var deferred = false

    func run() async throws {
        // A store that is opened as a closed standard stream would get the output. Now writing to these fails.
        for stream in STDIN_FILENO...STDERR_FILENO where fcntl(stream, F_GETFD) == -1 { _ = open("/dev/null", O_RDONLY) }
        var settings = StockServer.Settings()
        if deferred { settings.durability = .deferred }
        let server = StockServer(container: try await StockServer.open(.lmdb(URL(filePath: store))), settings: settings)
        let service = server.service(hostname: hostname, port: port, signals: [.sigint, .sigterm]) { [hostname] port in
            // The server answers also if nothing can be shown.
            try? FileHandle.standardOutput.write(contentsOf: Data("Listening on http://\(hostname):\(port)\n".utf8))
        }
        try await service.run()
    }
}
