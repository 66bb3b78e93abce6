import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// Saves as one writer, from the file's present state on, until the process is killed. Every save also increments a counter
/// that all writers share, so that a lost update shows.
struct KilledWorker {
    let place: StorePlace
    let seed: UInt64
    let writer: Int

    static let largestPayload = 3_000

    func run() async throws {
        // Ends the process if the parent dies. No run takes that long.
        alarm(600)
        let acknowledgements = try AcknowledgementFile(folder: place.folder)
        do {
            try await place.withContainer(.first) { try await save($0, acknowledgements) }
        } catch {
            try acknowledgements.note("failed", "writer \(writer):", error)
        }
    }

    private func save(_ container: PersistentContainer, _ acknowledgements: AcknowledgementFile) async throws {
        let context = container.coordinator.newBackgroundContext(name: "writer \(writer)")
        let found = try await context.perform { [writer] in try $0.saves(of: writer) }
        var library = Library(
            like: Library(seed: seed, writer: writer, largestPayload: Self.largestPayload), after: found)
        while true {
            let step = library.advance()
            let now = library
            try acknowledgements.note("start", writer, now.saves - 1)
            while true {
                try await context.perform { try $0.apply(step, of: now, as: .first) }
                do {
                    if step.isDurable {
                        try await context.save(.durable)
                    } else if now.saves.isMultiple(of: 2) {
                        // On SQLite, durable saves after this one are synced separately from their commits.
                        try await context.perform { try $0.saveNow(.deferred(within: .milliseconds(3))) }
                    } else {
                        try await context.save(.deferred(within: .milliseconds(3)))
                    }
                    break
                } catch SaveError.conflicts(let conflicts) {
                    try await self.check(conflicts, context)
                    // Another process has incremented the shared counter.
                    await context.perform { context in
                        context.rollback()
                        context.refreshAllObjects()
                    }
                    try await container.coordinator.refresh()
                    await context.perform { $0.refreshAllObjects() }
                }
            }
            try acknowledgements.note(step.isDurable ? "durable" : "deferred", writer, now.saves - 1)
            guard step.isFlushed else { continue }
            try acknowledgements.note("flush", writer)
            try await container.flush()
            try acknowledgements.note("flushed", writer)
        }
    }

    /// Two writers conflict only at the shared counter.
    private func check(_ conflicts: [MergeConflict], _ context: BackgroundContext) async throws {
        let others = await context.perform { context in
            conflicts.filter { conflict in
                context.object(with: conflict.objectID)["number"] != .int(Int64(LibraryModel.sharedWriter))
                    || conflict.entityName != "Writer"
            }.map(\.description)
        }
        guard others.isEmpty else { throw CrashRunError("a conflict with nobody: \(others)") }
    }
}
