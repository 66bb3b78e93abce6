import ArgumentParser
import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

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
        try InputFiles.refuseStandardOutput(target)
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
                JSON.object(["file": .string(target), "bytes": .number(bytes), "save": .number(token.generation.rawValue)]).text)
        }
        try Console.show("\(target): \(ByteText.text(bytes)), up to save \(token.generation)")
    }
}

/// The size of a file.
enum FileSize {
    static func bytes(_ path: String) -> Int {
        ((try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? NSNumber)?.intValue ?? 0
    }
}
