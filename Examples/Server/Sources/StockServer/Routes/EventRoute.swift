import AsyncAlgorithms
import Foundation
import Hummingbird
import ServiceLifecycle
import Strata

/// The route `/events`: the selected items as server-sent events, now and after each change.
struct EventRoute: Sendable {
    let container: PersistentContainer
    let settings: StockServer.Settings

    @Sendable func open(_ request: Request, _ context: some RequestContext) async throws -> Response {
        let feed = StockFeed(container: container, filter: try ItemFilter(request.uri.queryParameters))
        let (keepAlive, logger) = (settings.keepAlive, context.logger)
        let body = ResponseBody { writer in
            // Cancels the closure when the client closes the connection.
            try await request.body.consumeWithCancellationOnInboundClose { _ in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    let parts = AsyncChannel<EventPart>()
                    group.addTask {
                        defer { parts.finish() }
                        do { try await feed.send(to: parts) } catch {
                            logger.error("a stream of events ended: \(error)")
                        }
                    }
                    group.addTask {
                        while true {
                            try await Task.sleep(for: keepAlive)
                            await parts.send(.keepAlive)
                        }
                    }
                    try await withGracefulShutdownHandler {
                        for await part in parts { try await writer.write(part.encoded()) }
                    } onGracefulShutdown: {
                        parts.finish()
                    }
                    group.cancelAll()
                    try await writer.finish(nil)
                }
            }
        }
        // The connection cannot be used again, because it is watched for its end.
        let headers: HTTPFields = [.contentType: "text/event-stream", .cacheControl: "no-store", .connection: "close"]
        return Response(status: .ok, headers: headers, body: body)
    }
}

/// A part of the stream of events.
enum EventPart: Sendable {
    case items(ItemPage)
    /// A comment. It finds out that a client is gone without having closed the connection.
    case keepAlive

    func encoded() throws -> ByteBuffer {
        switch self {
        case .items(let page):
            var buffer = ByteBuffer(string: "event: items\ndata: ")
            buffer.writeBytes(try JSONEncoder().encode(page))
            buffer.writeString("\n\n")
            return buffer
        case .keepAlive:
            return ByteBuffer(string: ": keep-alive\n\n")
        }
    }
}
