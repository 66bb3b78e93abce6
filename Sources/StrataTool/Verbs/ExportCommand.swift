import ArgumentParser
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
            `strata import` makes a store of each form again, with the same objects. Exporting that store as JSON lines or as CSV gives the \
            same bytes as before. A store on SQLite also has an id and a history of its own, so two exports of one store differ in them. \
            CSV files are complete before the first one gets its name, and get their names one after the other. If the program is killed \
            meanwhile, the folder has files of both exports and a file named $incomplete, and `strata import` refuses it.
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
            "Write the objects of this entity and of those that inherit from it only, as JSON lines. With references to other entities, they cannot be imported alone."
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
        if target != "-" { try InputFiles.refuseToReplace(file, by: target) }
        let source = try await InputFiles.source(file, entity: entity)
        let summary: TransferSummary
        switch try form() {
        case .jsonl:
            let writer = try TextWriter(target, existing: existing, dataOf: file)
            do {
                summary = try JSONLines.write(source, to: writer)
                try writer.finish()
            } catch {
                writer.discard()
                throw error
            }
            if target == "-" { return TransferReport(summary, source: source, target: target).showNotes() }
        case .csv: summary = try CSVFiles.write(source, in: file, to: target, existing: existing)
        case .sqlite: summary = try await StoreSink(path: target, kind: .sqlite, existing: existing).fill(from: source, in: file)
        }
        try TransferReport(summary, source: source, target: target).show(asJSON: output.json)
    }
}
