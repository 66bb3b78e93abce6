import ArgumentParser
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata diff`: the objects that differ between two files, or between two saves of one file.
struct DiffCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "diff", abstract: "Lists the objects that differ between two stores, or between two saves of one.",
        discussion: """
            Two stores are compared object by object: those of one entity with one key. So it shows what has changed since a backup. Two saves \
            are compared by the history, with --from and --to. It keeps no former values of updated properties. Of deleted objects, it keeps \
            the values of attributes that the model marks .preserveValueOnDeletion. Unknown values are left out, and are null in JSON. The \
            status is 1 if there are differences.
            """)

    @Argument(help: "The store, which is the older one of two.", completion: .file())
    var file: String

    @Argument(help: "The other store.", completion: .file())
    var other: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("Compare the state after this save of the store.", valueName: "save"))
    var from: UInt64?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("… with the state after this save; the newest one if it is left out.", valueName: "save"))
    var to: UInt64?

    @OptionGroup var output: OutputOptions

    mutating func validate() throws {
        guard (other == nil) != (from == nil) else { throw ValidationError("name a second store, or a save with --from") }
        if to != nil, from == nil { throw ValidationError("--to needs --from") }
        if let from, let to, to < from { throw ValidationError("--to is a save after --from") }
    }

    mutating func run() async throws {
        let progress = ProgressBar(other == nil ? "saves compared" : "objects compared")
        defer { progress.finish() }
        var list = DifferenceList(isJSON: output.json, progress: progress)
        if let other {
            try await StoreComparison(file, other).forEachDifference(showing: progress) { try list.print($0) }
        } else {
            let found = try await historyDifferences(from: Generation(rawValue: from ?? 0), showing: progress)
            for difference in found { try list.print(difference) }
        }
        try list.finish(notes: other == nil)
        if !list.isEmpty { throw ToolError.printedFindings }
    }

    /// Returns what the saves between two positions have changed altogether.
    private func historyDifferences(from: Generation, showing progress: ProgressBar) async throws -> [Difference] {
        let (file, to) = (file, to.map(Generation.init(rawValue:)))
        return try await OpenedStore.with(file) { store in
            let coordinator = store.container.coordinator
            // Other processes may save meanwhile, so the history and the values are those of one state.
            let state = try coordinator.snapshot(owner: "diff")
            let newest = state.generation
            guard from <= newest, to.map({ $0 <= newest }) != false else {
                throw ToolError.wrongInput(
                    "\(file) has no save \(max(from, to ?? 0)); the newest is \(newest). See `strata history`")
            }
            let pages = HistoryPages(
                HistoryRequest(after: HistoryCommand.token(from, in: coordinator)),
                through: HistoryCommand.token(newest, in: coordinator))
            let model = store.model
            var found: [ObjectID: Difference] = [:]
            // The properties that saves after the second state have changed. Of the others, the newest value is the one of that state.
            var later: [ObjectID: Set<String>] = [:]
            while let page = try await pages.next(in: coordinator) {
                for save in page {
                    for change in save.changes {
                        guard to.map({ save.id <= $0 }) != false else {
                            // A deleted object may come back, by undo for instance, and has any values then.
                            let columns = model.wholeEntity(change.entityName)?.columns.map(\.name) ?? []
                            later[change.objectID, default: []].formUnion(
                                change.kind == .update ? change.updatedProperties : Set(columns))
                            continue
                        }
                        let before = found.removeValue(forKey: change.objectID)
                        found[change.objectID] = Difference(change, model).after(before)
                    }
                }
                if let last = page.last {
                    progress.update(from.distance(to: last.id), of: from.distance(to: max(newest, from.next)))
                }
            }
            let (differences, changed, names) = (found, later, store.names)
            return try await coordinator.newBackgroundContext(name: "diff", reading: state).perform { context throws in
                let known = CurrentValues(context: context, names: names, changed: changed)
                return try differences.sorted { ($0.key.entity, $0.key.key) < ($1.key.entity, $1.key.key) }.map {
                    try known.completed($0.value, of: $0.key)
                }
            }
        }
    }
}

/// The newest values, which are those of an earlier state unless a later save has changed them.
private struct CurrentValues {
    let context: ManagedObjectContext
    let names: ObjectNames
    /// The properties that saves after the state have changed.
    let changed: [ObjectID: Set<String>]

    /// Returns a difference with the values after it, as far as they are known, and with the name of its keyed entry.
    func completed(_ difference: Difference, of id: ObjectID) throws -> Difference {
        guard let entity = names.model.wholeEntity(difference.entity) else { return try entry(difference, of: id) }
        guard difference.kind == .update, let object = try? context.existingObject(with: id) else { return difference }
        var difference = difference
        for (place, property) in difference.properties.enumerated() {
            guard property.values != nil, let column = entity.column(named: property.name),
                changed[id]?.contains(property.name) != true
            else { continue }
            difference.properties[place].values?.after = .value(object[property.name], entity.columns[column].type)
        }
        return difference
    }

    /// Returns the difference of an object that the model does not have: a record of the keyed collections.
    private func entry(_ difference: Difference, of id: ObjectID) throws -> Difference {
        switch try context.storedRecord(of: id) {
        case .entry(let name, let entry)?:
            let collection = try collection(name)
            let isNewest = changed[id] == nil
            let after = isNewest ? ComparedValue.entry(entry.value, collection) : nil
            let value = Difference.Property(name: "value", values: (nil, after))
            return Difference(
                kind: difference.kind, collection: name, key: ComparedKey(entry.key, of: collection, naming: names),
                properties: difference.kind == .update ? [value] : [])
        case .collection(let collection)?: return Difference(kind: difference.kind, collection: collection.name, key: nil)
        case nil:
            if let (name, key) = difference.removedEntry {
                return Difference(
                    kind: difference.kind, collection: name, key: try ComparedKey(key, of: collection(name), naming: names))
            }
            // The history did not keep the keys of entries that older versions removed, nor the names of collections.
            var difference = difference
            difference.entity = "entry of a keyed collection"
            difference.properties = []
            return difference
        }
    }

    /// Returns the present collection of a name, whose types show keys to people.
    private func collection(_ name: String) throws -> StoredCollection? {
        try context.storedCollections().first { CollectionName($0.name) == CollectionName(name) }
    }
}

/// The output of the verb, which is printed one difference at a time.
private struct DifferenceList {
    private let isJSON: Bool
    private let progress: ProgressBar
    private(set) var isEmpty = true
    private var hasUnknownBefore = false
    private var hasUnknownAfter = false
    private var hasUnknownAttribute = false

    init(isJSON: Bool, progress: ProgressBar) {
        self.isJSON = isJSON
        self.progress = progress
    }

    mutating func print(_ difference: Difference) throws {
        progress.clear()
        if isJSON {
            try Console.current.write((isEmpty ? "[" : ",\n") + difference.json.text)
        } else {
            try Console.print(difference.text)
        }
        isEmpty = false
        let values = difference.properties.compactMap(\.values)
        hasUnknownBefore = hasUnknownBefore || values.contains { $0.before == nil }
        hasUnknownAfter = hasUnknownAfter || values.contains { $0.after == nil }
        hasUnknownAttribute = hasUnknownAttribute || difference.kind == .delete && difference.hasUnknownAttribute
    }

    /// Prints the end.
    /// - Parameter notes: Whether to name the kinds of values that the history does not keep.
    func finish(notes: Bool) throws {
        progress.clear()
        if isJSON { return try Console.print((isEmpty ? "[" : "") + "]") }
        if notes { for line in unknownValues { try Console.print(line) } }
        if isEmpty { try Console.print("no differences") }
    }

    /// A line per kind of values that the history does not keep, with the way to see or keep them.
    private var unknownValues: [String] {
        var lines: [String] = []
        if hasUnknownBefore {
            lines.append(
                "The history does not keep the former values of updated properties. To see them, compare the store with a backup of that "
                    + "time.")
        }
        if hasUnknownAfter {
            lines.append("The history does not keep values that later saves have changed. These are left out, too.")
        }
        if hasUnknownAttribute {
            lines.append(
                "The history keeps the values of a deleted object only for attributes that the model marks .preserveValueOnDeletion. To "
                    + "keep more of them from now on, mark their attributes.")
        }
        return lines
    }
}
