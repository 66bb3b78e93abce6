import ArgumentParser
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata history`: the saves of a store.
struct HistoryCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Lists the saves of a store: number, time, author, and changed objects.")

    @Argument(help: "The store.", completion: .file())
    var file: String

    @Option(parsing: .unconditional, help: "Begin after the save with this number.")
    var after: UInt64?

    @Option(parsing: .unconditional, help: "Show at most this number of saves, the newest ones.")
    var limit: Int?

    @Option(help: "Show the saves of this author only. Repeat it for several.")
    var author: [String] = []

    @Option(help: "Show changes of this entity only. Repeat it for several.")
    var entity: [String] = []

    @Flag(help: "Wait for further saves of other processes, until the program is interrupted.")
    var follow = false

    @OptionGroup var output: OutputOptions

    mutating func validate() throws {
        if let limit, limit < 0 { throw ValidationError("--limit is a number from 0") }
    }

    mutating func run() async throws {
        let options = self
        try await OpenedStore.with(file) { store in
            let coordinator = store.container.coordinator
            let entities = try options.entity.map { try store.entity($0).name }
            var request = HistoryRequest(
                authors: options.author.isEmpty ? nil : Set(options.author), entities: entities.isEmpty ? nil : Set(entities))
            request.after = options.after.map { Self.token(Generation(rawValue: $0), in: coordinator) }
            // Begin to watch before the first read, so that no save is missed between the two.
            let changes = options.follow ? coordinator.remoteChanges : nil
            if options.follow { try coordinator.followOtherProcesses() }
            let start = coordinator.currentHistoryToken
            var last = request.after ?? start
            if let limit = options.limit {
                let found = try await Self.newest(limit, of: request, in: coordinator)
                try options.show(found)
                last = found.last?.token ?? last
            } else {
                let pages = HistoryPages(request, through: start)
                while let page = try await pages.next(in: coordinator) {
                    try options.show(page)
                    last = page.last?.token ?? last
                }
            }
            guard let changes else { return }
            // Saves that the request does not select were read too, and may be deleted before the next read.
            request.after = max(last, start)
            for await _ in changes {
                let read = coordinator.currentHistoryToken
                while let page = try await HistoryPages(request).next(in: coordinator), let token = page.last?.token {
                    try options.show(page)
                    request.after = token
                }
                request.after = max(request.after ?? read, read)
            }
        }
    }

    private func show(_ saves: [HistoryTransaction]) throws {
        for save in saves {
            try Task.checkCancellation()
            try Console.print(output.json ? Self.json(save).text : Self.text(save))
        }
    }

    /// Returns the newest saves that a request selects, oldest first. Reads from the end of the history, so that a small number of saves
    /// does not read all of it.
    private static func newest(
        _ limit: Int, of request: HistoryRequest, in coordinator: PersistentStoreCoordinator
    ) async throws -> [HistoryTransaction] {
        guard limit > 0 else { return [] }
        let end = coordinator.currentHistoryToken
        let newest = end.generation
        let first = request.after?.generation ?? 0
        func last(of request: HistoryRequest) async throws -> [HistoryTransaction] {
            let pages = HistoryPages(request, through: end)
            var found: [HistoryTransaction] = []
            while let page = try await pages.next(in: coordinator) { found = (found + page).suffix(limit) }
            return found
        }
        var count = limit
        while newest.earlier(by: count) > first {
            var part = request
            part.after = token(newest.earlier(by: count), in: coordinator)
            do {
                let found = try await last(of: part)
                if found.count == limit { return found }
            } catch HistoryError.tokenExpired {
                break
            }
            count = count.multipliedReportingOverflow(by: 8).overflow ? .max : count * 8
        }
        return try await last(of: request)
    }

    /// Returns the position after a save of the present incarnation; after the newest save if there is none with the number.
    static func token(_ save: Generation, in coordinator: PersistentStoreCoordinator) -> HistoryToken {
        let newest = coordinator.currentHistoryToken
        return HistoryToken(store: newest.store, incarnation: newest.incarnation, generation: min(save, newest.generation))
    }

    private static func text(_ save: HistoryTransaction) -> String {
        let date = ValueText.moment(save.date)
        let source = [save.author.map { "by \($0)" }, save.contextName.map { "in \($0)" }].compactMap(\.self)
        let changes = save.changes
        var kinds: [String: Int] = [:]
        for change in changes { kinds["\(change.kind.rawValue) \(change.entityName)", default: 0] += 1 }
        let what = kinds.sorted { $0.key < $1.key }.map { "\($0.key) ×\($0.value)" }.joined(separator: ", ")
        let who = (source + ["process \(save.processID)"]).joined(separator: " ")
        return "\(save.id)  \(date)  \(who): \(what.isEmpty ? "no changes of objects" : what)".withoutControls()
    }

    private static func json(_ save: HistoryTransaction) -> JSON {
        .object([
            "save": .number(save.id.rawValue), "date": .string(ValueText.moment(save.date)),
            "author": save.author.map { .string($0) } ?? .null, "context": save.contextName.map { .string($0) } ?? .null,
            "process": .number(save.processID), "changes": .array(save.changes.map(json)),
        ])
    }

    /// Returns the change of an object as JSON.
    static func json(_ change: HistoryChange) -> JSON {
        var members = [
            JSON.Member(name: "kind", value: .string(change.kind.rawValue)),
            JSON.Member(name: "entity", value: .string(change.entityName)),
            JSON.Member(name: "key", value: .number(change.objectID.key.rawValue)),
        ]
        if !change.updatedProperties.isEmpty {
            members.append(
                JSON.Member(name: "properties", value: .array(change.updatedProperties.sorted().map { .string($0) })))
        }
        return .object(members)
    }
}

/// The saves that a request selects, some at a time, so that a long history is not in memory as a whole.
final class HistoryPages {
    private var request: HistoryRequest
    /// The last save to read; nil for the newest one.
    private let end: Generation?
    private var isAtEnd = false
    /// The number of saves per page.
    private static let size = 200

    /// - Parameters:
    ///   - request: The saves, without a limit.
    ///   - end: The position at which to end; nil for the end of the history.
    init(_ request: HistoryRequest, through end: HistoryToken? = nil) {
        self.request = request
        self.request.limit = Self.size
        self.end = end?.generation
    }

    /// Returns the next saves, oldest first; nil at the end.
    func next(in coordinator: PersistentStoreCoordinator) async throws -> [HistoryTransaction]? {
        guard !isAtEnd else { return nil }
        try Task.checkCancellation()
        let found = try await coordinator.history(request)
        let page = end.map { end in found.filter { $0.id <= end } } ?? found
        isAtEnd = found.count < Self.size || page.count < found.count
        request.after = page.last?.token ?? request.after
        return page.isEmpty ? nil : page
    }
}
