import ArgumentParser
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata verify`: the faults of a file.
struct VerifyCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Checks every page, index, relationship and save of a store.",
        discussion:
            "Prints one line per fault. The status is 0 for a sound store, 1 if there are faults, and 2 if it cannot be opened.")

    @Argument(help: "The store.", completion: .file())
    var file: String

    @OptionGroup var output: OutputOptions

    mutating func run() async throws {
        let json = output.json
        let found: [String]
        do {
            found = try await OpenedStore.with(file) { store in
                let bar = ProgressBar("checking \(store.path)")
                bar.showBusy()
                defer { bar.finish() }
                return try await store.container.coordinator.verify(progress: bar.update).map(\.description)
            }
        } catch let error as StoreError where error.code == .damaged {
            // Opening has found a fault. It reports the first one.
            found = [error.message]
        }
        if json {
            try Console.print(JSON.object(["file": .string(file), "findings": .array(found.map { .string($0) })]).text)
        } else {
            for finding in found { try Console.print(finding) }
            if found.isEmpty { try Console.print("\(file) is sound") }
        }
        guard found.isEmpty else {
            throw ToolError.failed("\(file) has \(found.count == 1 ? "a fault" : "\(found.count) faults"). Restore a copy")
        }
    }
}

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
            return try Console.print("\(target): \(ByteText.text(sizes.after)), from \(ByteText.text(sizes.before))")
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
        try Console.print("\(path): packed \(result.pagesPacked) of \(result.pages) pages, \(sizes)")
    }
}

/// `strata backup`: a copy of a store in use.
struct BackupCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Copies a store to a new file while it may be in use.",
        discussion: "The copy has the ids of the store, and is complete and checked when it gets its name.")

    @Argument(help: "The store.", completion: .file())
    var file: String

    @Argument(help: "The new file.", completion: .file())
    var target: String

    @OptionGroup var replacing: ReplaceOptions
    @OptionGroup var output: OutputOptions

    mutating func run() async throws {
        let (target, json) = (target, output.json)
        let existing = replacing.existing
        let token = try await OpenedStore.with(file) { store in
            let bar = ProgressBar("copying \(store.path)")
            bar.showBusy()
            defer { bar.finish() }
            let url = URL(fileURLWithPath: target, isDirectory: false)
            return try await store.container.coordinator.backup(to: url, existing: existing, progress: bar.update)
        }
        let bytes = FileSize.bytes(target)
        if json {
            return try Console.print(
                JSON.object(["file": .string(target), "bytes": .number(bytes), "save": .number(token.generation)]).text)
        }
        try Console.print("\(target): \(ByteText.text(bytes)), up to save \(token.generation)")
    }
}

/// The size of a file.
enum FileSize {
    static func bytes(_ path: String) -> Int {
        ((try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? NSNumber)?.intValue ?? 0
    }
}
