import ArgumentParser
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
            for finding in found { try Console.show(finding) }
            if found.isEmpty { try Console.show("\(file) is sound") }
        }
        guard found.isEmpty else {
            throw ToolError.failed(
                "\(file) has \(found.count == 1 ? "a fault" : "\(found.count) faults"). Restore a backup, or copy what is whole with "
                    + "`strata repair`")
        }
    }
}
