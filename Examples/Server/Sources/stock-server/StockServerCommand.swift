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
        var settings = StockServer.Settings()
        if deferred { settings.durability = .deferred }
        let server = StockServer(container: try await StockServer.open(.lmdb(URL(filePath: store))), settings: settings)
        let service = server.service(hostname: hostname, port: port, signals: [.sigint, .sigterm]) { [hostname] port in
            FileHandle.standardOutput.write(Data("Listening on http://\(hostname):\(port)\n".utf8))
        }
        try await service.run()
    }
}
