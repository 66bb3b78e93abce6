import ArgumentParser
import Datasets
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata export`: the objects of a store in a form for other programs.
struct ExportCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Writes the objects of a store as JSON lines, as CSV files, or to a store on SQLite.",
        discussion: """
            The form follows from the name: .jsonl, .ndjson, .json or - (standard output) for JSON lines, .sqlite, .sqlite3 or .db for SQLite, and \
            a name without a suffix for a folder of CSV files. Other suffixes need --format. \
            Each object has the id $id, its position among the objects of its entity, which references contain. \
            `strata import` makes a store of each form again, and exporting that store gives the same bytes.
            """)

    /// The form of an export.
    enum Form: String, ExpressibleByArgument, CaseIterable { case jsonl, csv, sqlite }

    @Argument(help: "The store.", completion: .file())
    var file: String

    @Argument(help: "The file or folder to write, or - for standard output.", completion: .file())
    var target: String

    @Option(help: "The form, if it is not to follow from the name.")
    var format: Form?

    @Option(
        help:
            "Write the objects of this entity only, as JSON lines. With references to other entities, they cannot be imported alone."
    )
    var entity: String?

    @OptionGroup var replacing: ReplaceOptions
    @OptionGroup var output: OutputOptions

    /// Returns the form that was asked for, or that the name has.
    private func form() throws -> Form {
        if let format { return format }
        if target == "-" { return .jsonl }
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: target, isDirectory: &isFolder), isFolder.boolValue { return .csv }
        let suffix = URL(fileURLWithPath: target).pathExtension
        switch suffix.lowercased() {
        case "jsonl", "ndjson", "json": return .jsonl
        case "sqlite", "sqlite3", "db": return .sqlite
        case _ where suffix.isEmpty || target.hasSuffix("/"): return .csv
        case "csv":
            throw ValidationError(
                "\(target): CSV is a folder with a file per entity. Name a folder without a suffix, or add --format csv")
        default:
            throw ValidationError("\(target): no form has the suffix .\(suffix). Add --format jsonl, csv or sqlite")
        }
    }

    mutating func validate() throws {
        let form = try form()
        if target == "-", form != .jsonl { throw ValidationError("only JSON lines can be written to standard output") }
        if entity != nil, form != .jsonl { throw ValidationError("--entity is for JSON lines only") }
        if target == "-", output.json {
            throw ValidationError("--json would mix with the objects on standard output; name a file")
        }
    }

    mutating func run() async throws {
        let existing = replacing.existing
        let source = try await StoreFiles.source(file, entity: entity)
        let summary: TransferSummary
        switch try form() {
        case .jsonl:
            let writer = try TextWriter(target, existing: existing)
            do {
                summary = try JSONLines.write(source, to: writer)
                try writer.finish()
            } catch {
                writer.discard()
                throw error
            }
            if target == "-" { return TransferReport(summary, source: source, target: target).showNotes() }
        case .csv: summary = try CSVFiles.write(source, to: target, existing: existing)
        case .sqlite: summary = try await StoreSink(path: target, kind: .sqlite, existing: existing).fill(from: source, in: file)
        }
        try TransferReport(summary, source: source, target: target).show(asJSON: output.json)
    }
}

/// `strata import`: a new store from the data of other programs.
struct ImportCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract:
            "Creates a store from an export, from SQLite, from Core Data or SwiftData, from Realm Studio, or from CSV files.",
        discussion: """
            SQLite: a table becomes an entity, a foreign key a relationship to one object, and a table of two foreign keys a relationship to \
            many. Core Data and SwiftData: names and types come from the model in the file, and sub-entities become subclasses. CSV and \
            exports of Realm Studio: types, keys and references are inferred. The new file gets its name when it is complete.
            """)

    @Argument(
        help: """
            A file or folder: JSON lines or CSV from `strata export`, SQLite, Core Data, SwiftData, JSON from Realm Studio, a store, a CSV \
            file, or a folder of CSV files.
            """, completion: .file())
    var input: String

    @Argument(help: "The store to create.", completion: .file())
    var store: String

    @Option(help: "The kind of the new store: lmdb or sqlite.")
    var kind = StoreSink.Kind.lmdb

    @Option(
        help: ArgumentHelp(
            "Write model classes in Swift for the new store to this file, or to standard output for -.", valueName: "Models.swift"
        ),
        completion: .file(extensions: ["swift"]))
    var swift: String?

    @OptionGroup var choices: ImportOptions

    @OptionGroup var replacing: ReplaceOptions
    @OptionGroup var output: OutputOptions

    mutating func validate() throws {
        if swift == "-", output.json {
            throw ValidationError("--json would mix with the classes on standard output. Name a file for --swift")
        }
    }

    mutating func run() async throws {
        let existing = replacing.existing
        var options = try choices.options()
        options.scratchFolder = URL(fileURLWithPath: store, isDirectory: false).deletingLastPathComponent()
        let source = try await StoreFiles.anySource(input, options: options, given: choices.given)
        // The model of a file has no names for the far ends of relationships.
        let model = source is DatasetSource ? source.model : InverseNames.model(over: source.model)
        let classes = try swift.map { _ in try SwiftSource(model).text() }
        // Before the import, which may take long.
        let writer = try swift.map { try TextWriter($0, existing: existing) }
        let summary: TransferSummary
        do {
            summary = try await StoreSink(path: store, kind: kind, existing: existing).fill(from: source, in: input)
            if let writer, let classes {
                try writer.write(classes)
                try writer.finish()
            }
        } catch {
            writer?.discard()
            throw error
        }
        let report = TransferReport(summary, source: source, target: store)
        // The classes alone are on standard output.
        if swift == "-" { report.complain() } else { try report.show(asJSON: output.json) }
    }
}

extension StoreSink.Kind: ExpressibleByArgument {}

/// The files that objects are read from.
enum StoreFiles {
    /// Opens a store to read all of its objects, or those of one entity.
    static func source(_ path: String, entity: String? = nil) async throws -> StoreSource {
        let model = try await FileKind(ofFile: path).storedModel(path)
        let named = model.entities.map(\.name)
        let number = try entity.map { name in
            guard let found = model.entity(named: name) else {
                throw ToolError.wrongInput("\(path) has no entity \(name)\(Suggestion.hint(for: name, among: named))")
            }
            return found.number
        }
        return try StoreSource(path, model, entity: number)
    }

    /// Opens any file or folder that can be imported.
    /// - Parameters:
    ///   - path: The file or folder.
    ///   - options: The choices for data of other programs.
    ///   - given: The names of the options that were given. They are refused where they have no effect.
    /// - Throws: ``ToolError``, the errors of the readers.
    static func anySource(_ path: String, options: DatasetOptions, given: [String]) async throws -> any ObjectSource {
        func checked(_ source: any ObjectSource) throws -> any ObjectSource {
            guard let option = given.first else { return source }
            throw ToolError.wrongInput("\(path): \(option) has no effect on this kind of input. Leave it out")
        }
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue {
            if CSVSource.isExport(path) { return try checked(CSVSource(path)) }
            return try DatasetSource(Dataset.read(path, options: options))
        }
        switch try FileKind(ofFile: path) {
        case .lmdb: return try await checked(source(path))
        case .sqlite:
            if try await isStore(path) { return try await checked(source(path)) }
            return try DatasetSource(Dataset.read(path, options: options))
        case .other:
            let lowercased = path.lowercased()
            if lowercased.hasSuffix(".csv") || lowercased.hasSuffix(".tsv") || options.delimiter != nil {
                return try DatasetSource(Dataset.read(path, options: options))
            }
            return try checked(
                RealmExport.isExport(path) ? DatasetSource(RealmExport.read(path)) : JSONLinesSource(path))
        }
    }

    /// Whether an SQLite file is a store.
    private static func isStore(_ path: String) async throws -> Bool {
        do {
            _ = try await Model(storedIn: FileKind.sqlite.description(path, .reading))
            return true
        } catch let error as StoreError where error.code == .cannotOpen {
            return false
        }
    }
}

/// The result of an export or import, for people or programs.
struct TransferReport {
    private let pairs: Int
    private let counts: [(name: String, count: Int)]
    /// The number of entries of each keyed collection.
    private let collections: [(name: String, count: Int)]
    private let notes: [String]
    private let lost: Int
    private let target: String

    init(_ summary: TransferSummary, source: any ObjectSource, target: String) {
        pairs = summary.pairs
        counts = summary.counts(in: source.model)
        collections = summary.entries.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        notes = source.notes
        lost = source.lostReferences
        self.target = target
    }

    private var entries: String {
        ", \(collections.reduce(0) { $0 + $1.count }) entries of \(collections.count) collections"
    }

    /// The result as a line.
    private var line: String {
        "\(target): \(counts.reduce(0) { $0 + $1.count }) objects of \(counts.count) entities, \(pairs) related pairs"
            + (collections.isEmpty ? "" : entries)
            + (lost == 0 ? "" : "; \(lost) references to missing rows are lost")
    }

    /// Writes the notes to standard error.
    func showNotes() {
        for note in notes { Console.current.complain(note) }
    }

    /// Writes the notes and the result to standard error, because other data is on standard output.
    func complain() {
        showNotes()
        Console.current.complain(line)
    }

    /// Writes the result to standard output, and the notes to standard error unless they are members of the JSON.
    func show(asJSON: Bool) throws {
        if asJSON {
            let objects = counts.reduce(0) { $0 + $1.count }
            let entities = counts.map { JSON.Member(name: $0.name, value: .number($0.count)) }
            return try Console.print(
                JSON.object([
                    "file": .string(target), "objects": .number(objects), "pairs": .number(pairs),
                    "lostReferences": .number(lost), "entities": .object(entities),
                    "collections": .object(collections.map { JSON.Member(name: $0.name, value: .number($0.count)) }),
                    "notes": .array(notes.map { .string($0) }),
                ]).text)
        }
        showNotes()
        try Console.print(line)
    }
}
