import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import StockServer

/// A client of the stock server, for tests and for the load test.
package struct StockClient: Sendable {
    /// An answer: its status and body.
    package struct Answer: Sendable {
        package var status: Int
        package var headers: HTTPHeaders
        package var body: ByteBuffer

        package func decode<T: Decodable>(_ type: T.Type = T.self) throws -> T {
            try JSONDecoder().decode(T.self, from: Data(body.readableBytesView))
        }
    }

    private let client: HTTPClient
    private let address: String

    package init(port: Int, client: HTTPClient = .shared) {
        address = "http://127.0.0.1:\(port)"
        self.client = client
    }

    /// Sends a request, and waits for the whole answer.
    ///
    /// - Parameters:
    ///   - method: The HTTP method.
    ///   - path: The path, with a query.
    ///   - json: The text of the body; nil for none.
    ///   - headers: The headers besides those of the body.
    package func send(
        _ method: HTTPMethod, _ path: String, json: String? = nil, headers: HTTPHeaders = [:]
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: address + path)
        request.method = method
        request.headers = headers
        if let json {
            request.headers.add(name: "content-type", value: "application/json")
            request.body = .bytes(ByteBuffer(string: json))
        }
        let response = try await client.execute(request, timeout: .seconds(60))
        return Answer(
            status: Int(response.status.code), headers: response.headers, body: try await response.body.collect(upTo: 1 << 26))
    }

    /// Opens a stream of events. It ends when the iterator is released or its task is cancelled.
    package func events(_ query: String = "") async throws -> ItemEvents {
        let request = HTTPClientRequest(url: "\(address)/events\(query)")
        return ItemEvents(body: try await client.execute(request, deadline: .distantFuture).body)
    }
}

/// The states that a stream of events delivers.
package struct ItemEvents: AsyncSequence, Sendable {
    package typealias Element = ItemPage
    fileprivate let body: HTTPClientResponse.Body

    package func makeAsyncIterator() -> Iterator { Iterator(bytes: body.makeAsyncIterator()) }

    package struct Iterator: AsyncIteratorProtocol {
        fileprivate var bytes: HTTPClientResponse.Body.AsyncIterator
        private var lines = ByteBuffer()
        private var searched = 0

        fileprivate init(bytes: HTTPClientResponse.Body.AsyncIterator) { self.bytes = bytes }

        /// Returns the next state; nil when the server has ended the stream. Comments are skipped.
        package mutating func next() async throws -> ItemPage? {
            while true {
                while let line = nextLine() {
                    if line.hasPrefix("data: ") {
                        return try JSONDecoder().decode(ItemPage.self, from: Data(line.utf8.dropFirst(6)))
                    }
                }
                guard var more = try await bytes.next() else { return nil }
                lines.discardReadBytes()
                lines.writeBuffer(&more)
            }
        }

        private mutating func nextLine() -> String? {
            guard let end = lines.readableBytesView.dropFirst(searched).firstIndex(of: UInt8(ascii: "\n")) else {
                searched = lines.readableBytes
                return nil
            }
            let line = lines.readString(length: end - lines.readerIndex)
            lines.moveReaderIndex(forwardBy: 1)
            searched = 0
            return line
        }
    }
}
