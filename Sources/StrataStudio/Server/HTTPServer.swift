import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOConcurrencyHelpers

/// An HTTP server on the loopback interface. One task serves each connection.
struct HTTPServer: Sendable {
    private typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, HTTPPart<HTTPResponseHead, ByteBuffer>>

    /// The greatest number of bytes in the body of a request.
    static let maximumBody = 1 << 20
    /// The greatest number of connections at one time. A browser uses at most six, and one more per page for events.
    private static let maximumConnections = 64
    /// The time after which a connection without any traffic is closed.
    private static let idleTime = TimeAmount.minutes(5)

    /// The time that a client has to read the last answer of its connection.
    private static let lingerTime = TimeAmount.seconds(5)

    private let channel: NIOAsyncChannel<Connection, Never>
    let port: Int

    /// Begins to listen on 127.0.0.1.
    ///
    /// - Parameter port: The port; 0 for any that is free.
    static func listen(port: Int) async throws -> HTTPServer {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 64)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .bind(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.configureHTTPServerPipeline(withErrorHandling: true)
                    try pipeline.addHandler(IdleStateHandler(allTimeout: idleTime))
                    try pipeline.addHandler(IdleConnectionCloser())
                    try pipeline.addHandler(ResponsePartConverter())
                    return try Connection(
                        wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
                }
            }
        return HTTPServer(channel: channel, port: channel.channel.localAddress?.port ?? port)
    }

    /// Serves connections until the task is cancelled.
    ///
    /// - Parameters:
    ///   - respond: Answers a request.
    ///   - refuse: Answers a request that cannot be read or is too large.
    func run(
        respond: @escaping @Sendable (StudioRequest) async -> StudioResponse,
        refuse: @escaping @Sendable (PageError) -> StudioResponse
    ) async throws {
        let count = ConnectionCount()
        try await withThrowingDiscardingTaskGroup { group in
            try await channel.executeThenClose { inbound in
                for try await connection in inbound {
                    guard count.begin(Self.maximumConnections) else {
                        // Not only its channel: a connection must be ended before it is released.
                        try? await connection.executeThenClose { _, _ in }
                        continue
                    }
                    group.addTask {
                        // An error of one connection, such as a lost one, concerns no other.
                        try? await Self.serve(connection, respond: respond, refuse)
                        count.end()
                    }
                }
            }
            group.cancelAll()
        }
    }

    private static func serve(
        _ connection: Connection, respond: @Sendable (StudioRequest) async -> StudioResponse,
        _ refuse: @Sendable (PageError) -> StudioResponse
    ) async throws {
        try await connection.executeThenClose { inbound, outbound in
            var parts = inbound.makeAsyncIterator()
            while case .head(let head)? = try await parts.next() {
                var body = Data()
                var isTooLarge = false
                while !isTooLarge, let part = try await parts.next() {
                    if case .end = part { break }
                    guard case .body(let bytes) = part else { break }
                    isTooLarge = body.count + bytes.readableBytes > maximumBody
                    if !isTooLarge { body.append(contentsOf: bytes.readableBytesView) }
                }
                let response: StudioResponse
                if isTooLarge {
                    response = refuse(PageError(.payloadTooLarge, "the request has more than 1 MB. Send less at once"))
                } else if let request = StudioRequest(head, body: body) {
                    response = await respond(request)
                } else {
                    response = refuse(PageError(.badRequest, "the address cannot be read. Open the address that strata printed"))
                }
                let isKept = head.isKeepAlive && !isTooLarge
                switch response.body {
                case .data(let data):
                    let isWithBody = head.method != .HEAD
                    try await outbound.write(.head(Self.head(response, head.version, length: data.count, isKept: isKept)))
                    if isWithBody { try await outbound.write(.body(ByteBuffer(bytes: data))) }
                    try await outbound.write(.end(nil))
                case .events(let events, let onClose):
                    connection.channel.closeFuture.whenComplete { _ in onClose() }
                    try await outbound.write(.head(Self.head(response, head.version, length: nil, isKept: true)))
                    for await event in events { try await outbound.write(.body(ByteBuffer(string: event))) }
                    return try await outbound.write(.end(nil))
                }
                if !isKept {
                    outbound.finish()
                    return try await linger(connection, &parts)
                }
            }
        }
    }

    /// Reads the rest of a connection whose sending end is closed, until the client closes it. Closing it with unread bytes, or before all bytes
    /// are sent, would cost the client the answer.
    private static func linger(
        _ connection: Connection, _ parts: inout NIOAsyncChannelInboundStream<HTTPServerRequestPart>.AsyncIterator
    ) async throws {
        let channel = connection.channel
        let end = channel.eventLoop.scheduleTask(in: lingerTime) { channel.close(promise: nil) }
        defer { end.cancel() }
        while try await parts.next() != nil {}
    }

    private static func head(
        _ response: StudioResponse, _ version: HTTPVersion, length: Int?, isKept: Bool
    ) -> HTTPResponseHead {
        var headers = response.headers
        if let length { headers.replaceOrAdd(name: "Content-Length", value: "\(length)") }
        if !isKept { headers.replaceOrAdd(name: "Connection", value: "close") }
        return HTTPResponseHead(version: version, status: response.status, headers: headers)
    }
}

/// The number of open connections.
private final class ConnectionCount: Sendable {
    private let count = NIOLockedValueBox(0)

    /// Returns false if there are too many.
    func begin(_ limit: Int) -> Bool {
        count.withLockedValue { count in
            guard count < limit else { return false }
            count += 1
            return true
        }
    }

    func end() { count.withLockedValue { $0 -= 1 } }
}

/// Closes a connection without traffic.
private final class IdleConnectionCloser: ChannelInboundHandler, Sendable {
    typealias InboundIn = HTTPServerRequestPart

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is IdleStateHandler.IdleStateEvent else { return context.fireUserInboundEventTriggered(event) }
        context.close(promise: nil)
    }
}

/// Converts responses of bytes, which tasks can send, to the form of NIO's encoder.
private final class ResponsePartConverter: ChannelOutboundHandler, Sendable {
    typealias OutboundIn = HTTPPart<HTTPResponseHead, ByteBuffer>
    typealias OutboundOut = HTTPServerResponsePart

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let part: HTTPServerResponsePart =
            switch unwrapOutboundIn(data) {
            case .head(let head): .head(head)
            case .body(let bytes): .body(.byteBuffer(bytes))
            case .end(let trailers): .end(trailers)
            }
        context.write(wrapOutboundOut(part), promise: promise)
    }
}
