import ArgumentParser
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata repair`: what is whole of a damaged store, in a new file.
struct RepairCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "repair", abstract: "Copies what is whole of a damaged store to a new file, and says what is lost.",
        discussion: """
            Objects whose pages or required values are damaged are left out, and references to them become nil. Indexes are built anew, so a damaged \
            index loses nothing. The new store has other ids and no history. The damaged file is not changed. Restore a backup if there is one: \
            it has everything. A file whose first pages or whose model is damaged cannot be read, and is refused. The status is 1 if something \
            is lost. If pages of LMDB are damaged, a temporary copy of the objects is made beside the new store.
            """)

    @Argument(help: "The damaged store.", completion: .file())
    var file: String

    @Argument(help: "The store to create.", completion: .file())
    var target: String

    @OptionGroup var replacing: ReplaceOptions
    @OptionGroup var output: OutputOptions

    mutating func run() async throws {
        let kind = try FileKind(ofFile: file)
        let damage = DamageReport()
        let salvaged = try await SalvagedFile(file, kind, for: target, existing: replacing.existing)
        // The copy of a damaged file.
        defer { salvaged?.discard() }
        let model = if let salvaged { salvaged.model } else { try await kind.storedModel(file) }
        let source = try StoreSource(salvaged?.path ?? file, model, leavingOut: damage)
        let sink = StoreSink(path: target, kind: kind == .sqlite ? .sqlite : .lmdb, existing: replacing.existing)
        var summary = try await sink.fill(from: source, in: file)
        summary.damage = salvaged?.harmlessDamage ?? []
        let objects = summary.counts(in: source.model).reduce(0) { $0 + $1.count }
        let entries = summary.entries.values.reduce(0, +)
        let lost = (salvaged?.losses ?? []) + damage.lines + source.notes
        // Before the output: the reader of a pipe can end the program.
        salvaged?.discard()
        if output.json {
            try Console.print(
                JSON.object([
                    "file": .string(target), "objects": .number(objects), "entries": .number(entries),
                    "lost": .array(lost.map { .string($0) }), "notes": .array(summary.notes.map { .string($0) }),
                ]).text)
        } else {
            for note in summary.notes { Console.note(note) }
            for line in lost { try Console.show(line) }
            let collections = summary.entries.isEmpty ? "" : ", \(entries) entries of collections"
            let line = "\(target): \(objects) objects" + collections + (lost.isEmpty ? ", nothing is lost" : "")
            try Console.show(line)
        }
        if !lost.isEmpty { throw ToolError.printedFindings }
    }
}
