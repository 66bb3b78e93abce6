import Foundation

/// A small client of HTTP, which can send any header, also wrong ones.
struct HTTPClient: Sendable {
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    struct Response: Sendable {
        var status: Int
        var headers: [String: String]
        var body: Data

        var text: String { String(decoding: body, as: UTF8.self) }
        func object() throws -> [String: Any] {
            guard let object = try? JSONSerialization.jsonObject(with: body) as? [String: Any] else {
                throw Failure(description: "no object of JSON: \(text)")
            }
            return object
        }
        /// The line of an error.
        var error: String? { (try? object())?["error"] as? String }
    }

    let port: Int

    /// Sends a request and reads the answer to the end of the connection.
    func send(_ head: String, _ headers: [(String, String)], _ body: Data = Data()) async throws -> Response {
        try await Self.blocking {
            let socket = try Connection(port)
            try socket.write(Self.bytes(head, headers + [("Connection", "close")], body))
            return try Self.response(socket.readToEnd())
        }
    }

    /// Begins a request whose answer is read in parts.
    func open(_ head: String, _ headers: [(String, String)]) async throws -> Connection {
        try await Self.blocking {
            let socket = try Connection(port)
            try socket.write(Self.bytes(head, headers, Data()))
            return socket
        }
    }

    /// Runs work that blocks on a new thread. The threads of the system's queues are too few for many tests at once.
    static func blocking<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }

    private static func bytes(_ head: String, _ headers: [(String, String)], _ body: Data) -> Data {
        var headers = headers
        if !body.isEmpty { headers.append(("Content-Length", "\(body.count)")) }
        let lines = ["\(head) HTTP/1.1"] + headers.map { "\($0.0): \($0.1)" }
        return Data((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body
    }

    private static func response(_ bytes: Data) throws -> Response {
        guard let end = bytes.firstRange(of: Data("\r\n\r\n".utf8)) else {
            throw Failure(description: "no answer but \(bytes.count) bytes")
        }
        let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ")
        guard words.count > 1, let status = Int(words[1]) else { throw Failure(description: "no status: \(lines[0])") }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2 { headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces) }
        }
        return Response(status: status, headers: headers, body: Data(bytes[end.upperBound...]))
    }

    /// A connection to a port of this computer. Its calls block.
    final class Connection: Sendable {
        private let descriptor: Int32

        /// Writing to a closed connection is an error and no signal.
        #if canImport(Darwin)
            private static let flags: Int32 = 0
        #else
            private static let flags = Int32(MSG_NOSIGNAL)
        #endif

        init(_ port: Int, address name: String = "127.0.0.1") throws {
            #if canImport(Darwin)
                let type = SOCK_STREAM
            #else
                let type = Int32(SOCK_STREAM.rawValue)
            #endif
            descriptor = socket(AF_INET, type, 0)
            guard descriptor >= 0 else { throw Failure(description: "no socket: \(errno)") }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(port).bigEndian
            address.sin_addr.s_addr = inet_addr(name)
            let code = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            // The deinitializer closes the socket also if this throws.
            guard code == 0 else { throw Failure(description: "no connection to port \(port): error \(errno)") }
        }

        deinit { close(descriptor) }

        func write(_ data: Data) throws {
            var rest = data
            while !rest.isEmpty {
                // A server may close the connection before it has read all. Its answer can still be read.
                let count = rest.withUnsafeBytes { Foundation.send(descriptor, $0.baseAddress, $0.count, Self.flags) }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }

        /// Returns the next bytes; empty at the end.
        func read() throws -> Data {
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count >= 0 else { throw Failure(description: "the connection failed: error \(errno)") }
            return Data(buffer.prefix(count))
        }

        func readToEnd() throws -> Data {
            var all = Data()
            while case let part = try read(), !part.isEmpty { all += part }
            return all
        }
    }
}
