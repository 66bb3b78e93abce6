import ArgumentParser
import Datasets
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata migrate --check`: what opening a store with another model would do.
struct MigrateCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "migrate", abstract: "Shows what opening a store with another model would do, without doing it.",
        discussion: """
            The other model is that of another store, or the model.json of an export as CSV. The store is copied to a temporary file, and the \
            copy is opened with the model. Files do not store former names, so a renamed property counts as one that is removed and one that \
            is added. The status is 1 if opening would be refused.
            """)

    @Argument(help: "The store.", completion: .file())
    var file: String

    @Option(help: ArgumentHelp("A store with the other model, or a model.json.", valueName: "file"), completion: .file())
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
        do { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) } catch {
            throw ToolError.failed(
                "\(folder.path): the folder for a copy cannot be created. Set TMPDIR to a folder that this user may write")
        }
        defer { try? FileManager.default.removeItem(at: folder) }
        let copy = folder.appendingPathComponent("copy")
        let changes: [String]
        var refusal: String?
        do {
            (changes, refusal) = try await check(target, with: copy)
        } catch let error as StoreError where Self.failures.contains(error.code) && error.message.contains(folder.path) {
            throw ToolError.failed(
                "cannot check \(file) with a copy in \(folder.path): \(error.message). Set TMPDIR to a folder on another disk")
        }
        // Before the output: the reader of a pipe can end the program.
        try? FileManager.default.removeItem(at: folder)
        if output.json {
            try Console.print(
                JSON.object([
                    "changes": .array(changes.map { .string($0) }), "opens": .bool(refusal == nil),
                    "refusal": refusal.map { .string($0) } ?? .null,
                ]).text)
        } else {
            for change in changes { try Console.show(change) }
            if changes.isEmpty { try Console.print("the models have the same schema") }
            try Console.show(refusal ?? "the store opens with this model")
        }
        if refusal != nil { throw ToolError.printedFindings }
    }

    /// Copies the store and opens the copy with a model. Returns the changes, and why the store would be refused; nil if it would not.
    private func check(_ target: Model, with copy: URL) async throws -> (changes: [String], refusal: String?) {
        let kind = try await OpenedStore.with(file) { store in
            try checkAllowedLosses(in: store.model)
            try await store.container.coordinator.backup(to: copy)
            return store.kind
        }
        // The copy has the mode of the store, which this user may not write, perhaps.
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: copy.path)
        let description = kind.description(copy.path, .writing)
        let changes = try await target.changes(opening: description, allowsDataLoss: Set(allowLoss)).lines
        // Opening the copy also finds values that a new unique constraint forbids.
        do {
            let container = try await PersistentContainer(model: target, store: description, allowsDataLoss: Set(allowLoss))
            try await container.close()
        } catch let error as StoreError where Self.refusals.contains(error.code) {
            // The message names the copy.
            return (changes, Self.inWordsOfTheTool(error.message.replacing(copy.path, with: file)))
        }
        return (changes, nil)
    }

    /// The errors of an opening that are about the model or the stored values.
    private static let refusals: Set<StoreError.Code> = [
        .schemaMismatch, .schemaTooNew, .unsupported, .valueTooLarge, .damaged,
    ]
    /// The errors that another folder for the copy may remedy.
    private static let failures: Set<StoreError.Code> = [.full, .inputOutput, .readOnly, .cannotOpen, .remoteFileSystem]

    /// Throws if a name of `--allow-loss` is none of the store.
    private func checkAllowedLosses(in model: Model) throws {
        let entities = model.entities.map(\.name) + model.subentities.map(\.name)
        for name in allowLoss where !entities.contains(name) {
            let parts = name.split(separator: ".", maxSplits: 1).map(String.init)
            guard let entity = parts.first.flatMap({ model.entity(named: $0) }), parts.count == 2 else {
                throw ToolError.wrongInput(
                    "--allow-loss \(name): \(file) has no entity \(parts.first ?? name)\(Suggestion.hint(for: parts.first ?? name, among: entities))"
                )
            }
            let known = PropertyPath.names(of: entity)
            guard known.contains(parts[1]) else {
                throw ToolError.wrongInput(
                    "--allow-loss \(name): \(entity.name) has no property \(parts[1])\(Suggestion.hint(for: parts[1], among: known))"
                )
            }
        }
    }

    /// Replaces the library's parameter in a refusal by the option of this verb.
    private static func inWordsOfTheTool(_ refusal: String) -> String {
        refusal.replacing(/pass allowsDataLoss: \[(.+)\]/) { match in
            let names = match.1.split(separator: ", ").map { $0.trimmingCharacters(in: ["\""]) }
            return "allow the loss with " + names.map { "--allow-loss \($0)" }.joined(separator: " ")
        }
    }

    private static func targetModel(_ path: String) async throws -> Model {
        let kind = try FileKind(ofFile: path)
        guard kind == .other else { return try await kind.storedModel(path) }
        return try SchemaText.model(FileManager.default.contents(atPath: path) ?? Data(), in: path)
    }
}
