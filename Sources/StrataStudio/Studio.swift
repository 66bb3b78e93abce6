import Foundation
import NIOCore
import NIOHTTP1
import ObjectGraph
import StoreInterface
import StoreModel

/// A local web page for one store: its schema, tables, objects, history, snapshots and file.
///
/// The page is served on the loopback interface only. Its address has a token, without which every request is refused.
public final class Studio: Sendable {
    /// The settings of a page.
    public struct Options: Sendable {
        /// A Boolean value that indicates whether objects can be changed.
        public var isWritable: Bool
        /// The port; 0 for any that is free.
        public var port: Int
        /// The time without a request after which states and edits that are kept for a page are released.
        public var idleTime: Duration

        /// Creates settings. By default, nothing can be changed.
        public init(isWritable: Bool = false, port: Int = 0, idleTime: Duration = .seconds(300)) {
            self.isWritable = isWritable
            self.port = port
            self.idleTime = idleTime
        }
    }

    private let server: HTTPServer
    private let access: AccessCheck
    private let router: Router
    private let feed: LiveFeed

    /// The address to open in a browser, with its token.
    public var address: String { "http://127.0.0.1:\(server.port)/?token=\(access.token)" }

    /// Begins to listen. Requests are answered from ``run()`` on.
    ///
    /// - Parameters:
    ///   - container: The store. The caller closes it after ``run()``.
    ///   - file: The name of the file, for titles.
    ///   - language: The text forms of conditions and values.
    ///   - options: The settings.
    /// - Throws: ``StudioError`` if the port is in use, or cannot be used by this user.
    public init(
        _ container: PersistentContainer, file: String, language: StudioLanguage, options: Options = Options()
    ) async throws {
        do { server = try await HTTPServer.listen(port: options.port) } catch let error as IOError {
            throw StudioError(
                description: error.errnoCode == EADDRINUSE
                    ? "another program uses it" : String(cString: strerror(error.errnoCode)))
        }
        access = AccessCheck(token: AccessCheck.makeToken(), port: server.port)
        let store = StudioStore(container: container, file: file, language: language, options: options)
        feed = LiveFeed(store)
        router = Router(store, feed)
    }

    /// Answers requests until the task is cancelled. Then it releases all states and edits that were kept for pages.
    ///
    /// - Throws: An error if the server cannot accept connections any more.
    public func run() async throws {
        await withTaskGroup { group in
            group.addTask { [feed, router] in
                await feed.run { router.releaseIdle() }
            }
            group.addTask { [self] in
                try? await server.run(respond: { await self.respond($0) }, refuse: { self.completed(.error($0), nil) })
            }
            // Both end when the task is cancelled.
            await group.next()
            group.cancelAll()
        }
        await feed.close()
        await router.close()
    }

    private func respond(_ request: StudioRequest) async -> StudioResponse {
        if let refusal = access.refusal(of: request) { return completed(refusal, nil) }
        return completed(await router.response(to: request), request)
    }

    private func completed(_ response: StudioResponse, _ request: StudioRequest?) -> StudioResponse {
        var response = response
        access.complete(&response, to: request)
        return response
    }
}

/// The reason why a port cannot be used.
public struct StudioError: Error, Sendable, CustomStringConvertible {
    /// The reason in words.
    public let description: String
}

/// The text forms of conditions, values and errors that a page shares with the program that serves it.
public struct StudioLanguage: Sendable {
    /// Returns the condition that a text describes.
    public var condition: @Sendable (_ text: String, _ entity: Entity, _ model: Model) throws -> Condition
    /// Returns the sort of a text such as `title,-plays`.
    public var sort: @Sendable (_ text: String) throws -> [AttributeSort]
    /// Returns a value as text that can be read back; nil for null.
    public var text: @Sendable (Value, ColumnType) -> String?
    /// Returns the value of a text; nil if no value of the type has this form.
    public var value: @Sendable (String, ColumnType) -> Value?
    /// Returns the one line of an error.
    public var sentence: @Sendable (any Error) -> String

    /// Creates a language from its functions.
    public init(
        condition: @escaping @Sendable (_ text: String, _ entity: Entity, _ model: Model) throws -> Condition,
        sort: @escaping @Sendable (_ text: String) throws -> [AttributeSort],
        text: @escaping @Sendable (Value, ColumnType) -> String?,
        value: @escaping @Sendable (String, ColumnType) -> Value?,
        sentence: @escaping @Sendable (any Error) -> String
    ) {
        self.condition = condition
        self.sort = sort
        self.text = text
        self.value = value
        self.sentence = sentence
    }
}
