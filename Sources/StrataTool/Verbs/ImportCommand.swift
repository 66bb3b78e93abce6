import ArgumentParser
import Datasets
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

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
        if let swift, swift != "-" { for used in [input, store] { try InputFiles.refuseToReplace(used, by: swift) } }
        var options = try choices.options()
        options.scratchFolder = URL(fileURLWithPath: store, isDirectory: false).deletingLastPathComponent()
        let source = try await InputFiles.anySource(input, options: options, given: choices.given)
        // The model of a file has no names for the far ends of relationships.
        let model = source is DatasetSource ? source.model : InverseNames.model(over: source.model)
        let classes = try swift.map { _ in try SwiftSource(model).text() }
        // Before the import, which may take long.
        let writer = try swift.map { try TextWriter($0, existing: existing, dataOf: nil) }
        let summary: TransferSummary
        do {
            // A full disk is noticed before the store gets its name.
            if let writer, let classes, writer.target != nil {
                try writer.write(classes)
                try writer.complete()
            }
            summary = try await StoreSink(path: store, kind: kind, existing: existing).fill(from: source, in: input)
            if let writer, let classes, writer.target == nil { try writer.write(classes) }
            try writer?.finish()
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
