import ArgumentParser
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata repair`: what is whole of a damaged store, in a new file.
struct RepairCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "repair", abstract: "Copies what is whole of a damaged store to a new file, and says what is lost.",
        discussion: """
            Objects whose pages or required values are damaged are left out, and references to them become nil. Indexes are built anew. The new \
            store has other ids and no history. The damaged file is not changed. Restore a backup if there is one: it has everything. \
            A file whose schema or whose own tree of pages is damaged cannot be read, and is refused. The status is 1 if something is lost.
            """)

    @Argument(help: "The damaged store.")
    var file: String

    @Argument(help: "The store to create.")
    var target: String

    @OptionGroup var replacing: ReplaceOptions
    @OptionGroup var output: OutputOptions

    mutating func run() async throws {
        let kind = try FileKind(ofFile: file)
        let damage = DamageReport()
        let source = try StoreSource(file, await kind.storedModel(file), leavingOut: damage)
        let sink = StoreSink(path: target, kind: kind == .sqlite ? .sqlite : .lmdb, existing: replacing.existing)
        let summary = try await sink.fill(from: source)
        let objects = summary.counts(in: source.model).reduce(0) { $0 + $1.count }
        let lost = damage.lines + source.notes
        if output.json {
            Console.print(
                JSON.object([
                    "file": .string(target), "objects": .number(objects), "lost": .array(lost.map { .string($0) }),
                ]).text)
        } else {
            for line in lost { Console.print(line) }
            Console.print("\(target): \(objects) objects" + (lost.isEmpty ? ", nothing is lost" : ""))
        }
        if !lost.isEmpty { throw ToolError.printedFindings }
    }
}
