import Foundation
import LMDBStore
import ObjectGraph
import StoreFiles
import StoreInterface
import StoreModel

/// A temporary copy of an LMDB file with damaged pages, which LMDB itself cannot open. It has the objects that whole pages lead to.
struct SalvagedFile {
    let model: Model
    let losses: [String]
    let harmlessDamage: [String]
    private let partial: PartialFile

    /// The path of the copy.
    var path: String { partial.path }

    /// Checks every page of a file, and copies it if some are damaged. Blocks. Returns nil for a file that can be opened, or that is none of
    /// LMDB.
    /// - Parameters:
    ///   - target: The file that is to be created. The copy is beside it.
    ///   - existing: Whether `target` may be replaced.
    init?(_ path: String, _ kind: FileKind, for target: String, existing: ExistingFile) async throws {
        guard kind == .lmdb else { return nil }
        let bar = ProgressBar("checking \(path)")
        bar.showBusy()
        defer { bar.finish() }
        do {
            _ = try await kind.storedSchema(path, check: .everything)
            return nil
        } catch let error as StoreError where error.code == .damaged {}
        try InputFiles.refuseStandardOutput(target)
        try InputFiles.refuseToReplace(path, by: target)
        // The copy gets the mode of the damaged file, because a killed process leaves the copy behind.
        partial = try PartialFile(for: URL(fileURLWithPath: target, isDirectory: false), existing: existing, like: path)
        do {
            let copy = URL(fileURLWithPath: partial.path, isDirectory: false)
            let salvage = try LMDBStore.salvage(URL(fileURLWithPath: path, isDirectory: false), to: copy)
            (losses, harmlessDamage) = (salvage.losses, salvage.harmlessDamage)
            guard let schema = try await kind.storedSchema(partial.path, check: .roots) else {
                throw ToolError.failed("\(path): its model cannot be read. Restore a backup")
            }
            model = try Model(stored: schema)
        } catch {
            partial.discard()
            throw error
        }
    }

    /// Removes the copy.
    func discard() { partial.discard() }
}
