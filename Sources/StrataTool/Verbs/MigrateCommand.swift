import ArgumentParser
import Foundation
import ObjectGraph
import StoreInterface

/// `strata migrate --check`: what opening a store with another model would do.
struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate", abstract: "Shows what opening a store with another model would do, without doing it.",
        discussion: """
            The other model is that of another store, or the model.json of an export as CSV. The store is copied to a temporary file, and the \
            copy is opened with the model. Files do not store former names, so a renamed property counts as one that is removed and one that \
            is added. The status is 1 if opening would be refused.
            """)

    @Argument(help: "The store.")
    var file: String

    @Option(help: ArgumentHelp("A store with the other model, or a model.json.", valueName: "file"))
    var model: String

    @Option(
        help: ArgumentHelp(
            "Allow this loss, as `allowsDataLoss` does: an entity, or Entity.property. Repeat it.", valueName: "name"))
    var allowLoss: [String] = []

    @Flag(help: "Check only. Required: the tool migrates no store.")
    var check = false

    @OptionGroup var output: OutputOptions

    mutating func validate() throws {
        guard check else { throw ValidationError("add --check; to migrate a store, open it with the program that has the model") }
    }

    mutating func run() async throws {
        let target = try await Self.targetModel(model)
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("strata-migrate-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let copy = folder.appendingPathComponent("copy")
        let (kind, source) = try await OpenedStore.with(file) { store in
            try await store.container.coordinator.backup(to: copy)
            return (store.kind, store.model.storeSchema)
        }
        let changes = SchemaChanges.lines(from: source, to: target.storeSchema)
        var refusal: String?
        do {
            let container = try await PersistentContainer(
                model: target, store: kind.description(copy.path, .writing), allowsDataLoss: Set(allowLoss))
            try await container.close()
        } catch let error as StoreError {
            // The message names the copy.
            refusal = error.message.replacing(copy.path, with: file)
        }
        if output.json {
            Console.print(
                JSON.object([
                    "changes": .array(changes.map { .string($0) }), "opens": .bool(refusal == nil),
                    "refusal": refusal.map { .string($0) } ?? .null,
                ]).text)
        } else {
            for change in changes { Console.print(change) }
            if changes.isEmpty { Console.print("the models have the same schema") }
            Console.print(refusal ?? "the store opens with this model")
        }
        if refusal != nil { throw ToolError.printedFindings }
    }

    private static func targetModel(_ path: String) async throws -> Model {
        let kind = try FileKind(ofFile: path)
        guard kind == .other else { return try await kind.storedModel(path) }
        return try SchemaText.model(FileManager.default.contents(atPath: path) ?? Data(), in: path)
    }
}

/// The differences of two schemas, one line each.
enum SchemaChanges {
    static func lines(from old: StoreSchema, to new: StoreSchema) -> [String] {
        var lines: [String] = []
        for entity in old.entities where !new.entities.contains(where: { $0.name == entity.name }) {
            lines.append("- \(entity.name)")
        }
        for entity in new.entities {
            guard let before = old.entities.first(where: { $0.name == entity.name }) else {
                lines.append("+ \(entity.name), with \(entity.columns.count) columns")
                continue
            }
            lines += columns(of: entity, new, from: before, old)
            let (first, second) = (Set(before.indexes.map { text($0, before) }), Set(entity.indexes.map { text($0, entity) }))
            lines += first.subtracting(second).sorted().map { "- \($0)" } + second.subtracting(first).sorted().map { "+ \($0)" }
        }
        let (first, second) = (Set(old.links.map { text($0, old) }), Set(new.links.map { text($0, new) }))
        lines += first.subtracting(second).sorted().map { "- \($0)" } + second.subtracting(first).sorted().map { "+ \($0)" }
        if old.version != new.version { lines.append("~ version \(old.version) → \(new.version)") }
        return lines
    }

    private static func columns(
        of entity: EntitySchema, _ new: StoreSchema, from before: EntitySchema, _ old: StoreSchema
    ) -> [String] {
        var lines: [String] = []
        for column in before.columns where !entity.columns.contains(where: { $0.name == column.name }) {
            lines.append("- \(entity.name).\(column.name)")
        }
        for column in entity.columns {
            let after = text(column, new)
            guard let known = before.columns.first(where: { $0.name == column.name }) else {
                lines.append("+ \(entity.name).\(column.name): \(after)")
                continue
            }
            let text = text(known, old)
            if text != after { lines.append("~ \(entity.name).\(column.name): \(text) → \(after)") }
        }
        return lines
    }

    private static func text(_ column: ColumnSchema, _ schema: StoreSchema) -> String {
        let type = column.destination.map { schema.entities[$0].name } ?? column.type.rawValue
        // Every reference has an index.
        let index = column.destination == nil && column.index != .none ? ", \(column.index.rawValue)" : ""
        return type + (column.isOptional ? "?" : "") + index
    }

    private static func text(_ index: IndexSchema, _ entity: EntitySchema) -> String {
        let names = index.columns.map { entity.columns[$0].name }.joined(separator: ", ")
        return "\(entity.name)(\(names)), \(index.kind.rawValue)"
    }

    private static func text(_ link: LinkSchema, _ schema: StoreSchema) -> String {
        "\(link.name): to many \(schema.entities[link.destination].name)"
    }
}
