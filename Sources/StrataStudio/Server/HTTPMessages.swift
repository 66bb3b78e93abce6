import Foundation
import NIOHTTP1

/// A request of the browser, read to its end.
struct StudioRequest: Sendable {
    var method: HTTPMethod
    var path: String
    /// The names and values after the question mark. Of two values with one name, the last counts.
    var query: [String: String] = [:]
    var headers: HTTPHeaders
    var body = Data()

    /// Returns nil if the address cannot be read.
    init?(_ head: HTTPRequestHead, body: Data) {
        guard head.uri.hasPrefix("/"), let parts = URLComponents(string: head.uri) else { return nil }
        method = head.method
        path = parts.path
        headers = head.headers
        self.body = body
        for item in parts.queryItems ?? [] {
            // A value that is not UTF-8 would count as none, and so as no condition.
            guard let value = item.value else { return nil }
            query[item.name] = value
        }
    }

    /// Returns the value of a cookie.
    func cookie(_ name: String) -> String? {
        for header in headers["cookie"] {
            for pair in header.split(separator: ";") {
                let parts = pair.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                if parts.count == 2, parts[0] == name { return parts[1] }
            }
        }
        return nil
    }

    /// Returns the body as a value.
    /// - Throws: ``PageError`` if it is no JSON of this form.
    func decoded<T: Decodable>(_ type: T.Type = T.self) throws -> T {
        guard headers.first(name: "content-type")?.hasPrefix("application/json") == true else {
            throw PageError(.unsupportedMediaType, "the request has no JSON. Send it as application/json")
        }
        do { return try JSONDecoder().decode(T.self, from: body) } catch {
            throw PageError(.badRequest, "the body of the request cannot be read. Reload the page")
        }
    }
}

/// The answer to a request.
struct StudioResponse: Sendable {
    enum Body: Sendable {
        case data(Data)
        /// Texts that are sent as they come, until the sequence or the connection ends.
        case events(AsyncStream<String>, onClose: @Sendable () -> Void)
    }

    var status: HTTPResponseStatus
    var headers = HTTPHeaders()
    var body: Body

    init(_ status: HTTPResponseStatus, type: String, body: Body) {
        self.status = status
        self.body = body
        headers.add(name: "Content-Type", value: type)
    }

    static func text(_ status: HTTPResponseStatus, _ text: String) -> StudioResponse {
        StudioResponse(status, type: "text/plain; charset=utf-8", body: .data(Data((text + "\n").utf8)))
    }

    /// An error as the page shows it: one sentence.
    static func error(_ error: PageError) -> StudioResponse {
        struct Failure: Encodable { var error: String }
        return json(Failure(error: error.message), error.status)
    }

    static func json(_ value: some Encodable, _ status: HTTPResponseStatus = .ok) -> StudioResponse {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value) else { return text(.internalServerError, "the answer has no JSON form") }
        return StudioResponse(status, type: "application/json; charset=utf-8", body: .data(data))
    }
}

/// An error of a request: one line with the thing, the reason and the remedy.
struct PageError: Error {
    var status: HTTPResponseStatus
    var message: String

    init(_ status: HTTPResponseStatus, _ message: String) {
        self.status = status
        self.message = message
    }
}
