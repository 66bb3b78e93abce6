import ArgumentParser
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata diff`: the objects that differ between two files, or between two saves of one file.
struct DiffCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "diff", abstract: "Lists the objects that differ between two stores, or between two saves of one.",
        discussion: """
            Two stores are compared object by object: those of one entity with one key. So it shows what has changed since a backup. Two saves \
            are compared by the history, with --from and --to. The status is 1 if there are differences.
            """)

    @Argument(help: "The store, which is the older one of two.")
    var file: String

    @Argument(help: "The other store.")
    var other: String?

    @Option(help: ArgumentHelp("Compare the state after this save of the store.", valueName: "save"))
    var from: UInt64?

    @Option(help: ArgumentHelp("… with the state after this save; the newest one if it is left out.", valueName: "save"))
    var to: UInt64?

    @OptionGroup var output: OutputOptions

    mutating func validate() throws {
        guard (other == nil) != (from == nil) else { throw ValidationError("name a second store, or a save with --from") }
        if to != nil, from == nil { throw ValidationError("--to needs --from") }
        if let from, let to, to < from { throw ValidationError("--to is a save after --from") }
    }

    mutating func run() async throws {
        let differences: [Difference]
        if let other {
            differences = try await StoreComparison(file, other).differences()
        } else {
            differences = try await Self.historyDifferences(file, from: from ?? 0, to: to)
        }
        if output.json {
            Console.print("[" + differences.map(\.json.text).joined(separator: ",\n") + "]")
        } else {
            for difference in differences { Console.print(difference.text) }
            if differences.isEmpty { Console.print("no differences") }
        }
        if !differences.isEmpty { throw ToolError.printedFindings }
    }

    /// Returns what the saves between two positions have changed altogether.
    private static func historyDifferences(_ file: String, from: UInt64, to: UInt64?) async throws -> [Difference] {
        try await OpenedStore.with(file) { store in
            let coordinator = store.container.coordinator
            let newest = coordinator.currentHistoryToken.generation
            guard from <= newest, to.map({ $0 <= newest }) != false else {
                throw ToolError.wrongInput(
                    "\(file) has no save \(max(from, to ?? 0)); the newest is \(newest). See `strata history`")
            }
            let saves = try await coordinator.history(HistoryRequest(after: HistoryCommand.token(from, in: coordinator)))
            var found: [ObjectID: Difference] = [:]
            for save in saves where to.map({ save.id <= $0 }) != false {
                for change in save.changes {
                    let before = found.removeValue(forKey: change.objectID)
                    found[change.objectID] = Difference(change).after(before)
                }
            }
            return found.sorted { ($0.key.entity, $0.key.key) < ($1.key.entity, $1.key.key) }.map(\.value)
        }
    }
}

/// One object that differs between two states.
struct Difference: Sendable {
    var kind: HistoryChange.Kind
    var entity: String
    var key: ObjectKey
    /// The properties that differ, of an object that both states have.
    var properties: [Property] = []

    struct Property: Sendable {
        var name: String
        /// The values before and after; nil if only the history is known.
        var values: (before: String, after: String)?
    }

    init(kind: HistoryChange.Kind, entity: String, key: ObjectKey, properties: [Property] = []) {
        self.kind = kind
        self.entity = entity
        self.key = key
        self.properties = properties
    }

    init(_ change: HistoryChange) {
        self.init(
            kind: change.kind, entity: change.entityName, key: change.objectID.key,
            properties: change.updatedProperties.sorted().map { Property(name: $0) })
    }

    /// Returns the difference together with an earlier one of the same object; nil if the object exists neither before nor after.
    func after(_ before: Difference?) -> Difference? {
        guard let before else { return self }
        switch (before.kind, kind) {
        case (.insert, .delete): return nil
        case (.insert, _): return before
        case (.update, .update):
            let known = Set(before.properties.map(\.name))
            var both = before
            both.properties += properties.filter { !known.contains($0.name) }
            both.properties.sort { $0.name < $1.name }
            return both
        case (.delete, .insert), (.delete, .update):
            return Difference(kind: .update, entity: entity, key: key, properties: properties)
        default: return self
        }
    }

    var text: String {
        let names = properties.map { property in
            property.values.map { "\(property.name): \($0.before) → \($0.after)" } ?? property.name
        }
        let sign = kind == .insert ? "+" : kind == .delete ? "-" : "~"
        return "\(sign) \(entity) \(key)" + (names.isEmpty ? "" : "  " + names.joined(separator: ", "))
    }

    var json: JSON {
        var members = [
            JSON.Member(name: "kind", value: .string(kind.rawValue)), JSON.Member(name: "entity", value: .string(entity)),
            JSON.Member(name: "key", value: .number(key)),
        ]
        if !properties.isEmpty {
            let list = properties.map { property -> JSON in
                guard let values = property.values else { return .string(property.name) }
                return .object([
                    "name": .string(property.name), "before": .string(values.before), "after": .string(values.after),
                ])
            }
            members.append(JSON.Member(name: "properties", value: .array(list)))
        }
        return .object(members)
    }
}
