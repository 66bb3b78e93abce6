import ArgumentParser
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata compact`: a smaller file.
struct CompactCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "compact", abstract: "Packs a store in place, or writes a copy without free space.",
        discussion: """
            For stores on LMDB. With --to, writes a new file and leaves the store as it is. With --write, packs the pages of the store itself, which may be in \
            use; the file keeps its length, and later saves use the freed space.
            """)

    @Argument(help: "The store.", completion: .file())
    var file: String

    @Option(help: "Write a copy without free space to this new file.", completion: .file())
    var to: String?

    @Flag(help: "Change the store itself.")
    var write = false

    @OptionGroup var output: OutputOptions

    mutating func validate() throws {
        guard write != (to != nil) else {
            throw ValidationError("choose --to with a new file, or --write to change the store itself")
        }
    }

    mutating func run() async throws {
        let (json, target, path) = (output.json, to, file)
        guard try FileKind(ofFile: path) != .sqlite else {
            throw ToolError.wrongInput("\(path): a store on SQLite cannot be compacted. Copy it with `strata backup`")
        }
        if let target {
            try InputFiles.refuseStandardOutput(target)
            let sizes = try await OpenedStore.with(path) { store in
                let bar = ProgressBar("copying \(path)")
                bar.showBusy()
                defer { bar.finish() }
                let before = try store.container.coordinator.fileBytes()
                try await store.container.compactCopy(to: URL(fileURLWithPath: target, isDirectory: false), progress: bar.update)
                return (before: before, after: FileSize.bytes(target))
            }
            if json {
                return try Console.print(
                    JSON.object([
                        "file": .string(target), "bytesBefore": .number(sizes.before), "bytesAfter": .number(sizes.after),
                    ]).text)
            }
            let line = "\(target): \(ByteText.text(sizes.after)), from \(ByteText.text(sizes.before))"
            return try Console.show(line)
        }
        let result = try await OpenedStore.with(path, access: .writing) { store in
            let bar = ProgressBar("pages")
            defer { bar.finish() }
            return try await store.container.compact(CompactionOptions(age: .any)) { bar.update($0.pagesSeen, of: $0.pages) }
        }
        if json {
            return try Console.print(
                JSON.object([
                    "file": .string(path), "pages": .number(result.pages), "packed": .number(result.pagesPacked),
                    "bytesBefore": .number(result.bytesBefore), "bytesAfter": .number(result.bytesAfter),
                ]).text)
        }
        let sizes = "\(ByteText.text(result.bytesBefore)) to \(ByteText.text(result.bytesAfter))"
        try Console.show("\(path): packed \(result.pagesPacked) of \(result.pages) pages, \(sizes)")
    }
}
