import Foundation
import LMDBStore
import ObjectGraph
import SQLiteStore
import StoreInterface
import StoreModel
import TestSupport

struct CrashRunError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// The operations of a worker process on a store, while its writes are recorded or until it is killed.
enum Workload: String, CaseIterable {
    case creation, saves, concurrent, large, compaction, lightweight, staged, backup

    /// The model at the end.
    var version: LibraryModel {
        switch self {
        case .lightweight: .renamed
        case .staged: .staged
        default: .first
        }
    }

    /// The number of contexts that save at the same time.
    var writers: Int { self == .concurrent ? 3 : 1 }

    var largestPayload: Int { self == .large ? 200_000 : 1_500 }

    var saves: Int {
        switch self {
        case .creation: 3
        case .lightweight, .staged: 12
        default: 25
        }
    }
}

/// A store's file in a folder, and the options to open it.
struct StorePlace: Sendable {
    var kind: StoreKind
    var folder: URL

    var file: URL { folder.appendingPathComponent("store") }

    var description: StoreDescription { description(file) }

    func description(_ file: URL) -> StoreDescription {
        guard kind == .lmdb else { return .sqlite(file) }
        var options = LMDBStore.Options()
        options.mapSize = 1 << 30
        // So that large values take several transactions.
        options.valueBytesOfTransaction = 1 << 17
        // A process that gets no processor for long is not a busy store.
        options.busyTimeout = .seconds(600)
        return .lmdb(file, options: options)
    }

    /// Opens the store, runs `body`, and returns when the store is closed in this process.
    func withContainer<R>(
        _ version: LibraryModel, _ file: URL? = nil, _ body: (PersistentContainer) async throws -> R
    ) async throws -> R {
        weak var store: (any ObjectStore)?
        let result: Result<R, any Error>
        do {
            let container = try await PersistentContainer(
                model: try version.model(), store: description(file ?? self.file), migrationPlan: try version.plan())
            store = container.coordinator.store
            do { result = .success(try await body(container)) } catch { result = .failure(error) }
        }
        // The limit ends a run that hangs.
        for _ in 0..<1_000_000 where store != nil { try await Task.sleep(for: .microseconds(500)) }
        guard store == nil else { throw CrashRunError("the store stays open after its container has gone") }
        return try result.get()
    }
}

/// Makes one writer's saves and acknowledges them.
struct Worker: Sendable {
    let place: StorePlace
    let workload: Workload
    let acknowledgements: AcknowledgementFile

    /// Runs the whole workload as writer 0.
    func run(seed: UInt64) async throws {
        var library = Library(seed: seed, writer: 0, largestPayload: workload.largestPayload)
        if workload.version != .first {
            try await place.withContainer(.first) { container in
                try acknowledgements.note("version", LibraryModel.first.rawValue)
                try await save(&library, workload.saves, .first, container)
            }
        }
        try await place.withContainer(workload.version) { container in
            try acknowledgements.note("version", workload.version.rawValue)
            switch workload {
            case .compaction: try await compact(&library, container)
            case .backup: try await backUp(&library, container)
            case .concurrent: try await saveAtOnce(library, container)
            case .lightweight, .staged:
                try await save(&library, workload.saves / 2, workload.version, container)
                try await container.coordinator.finishMigration()
                try await save(&library, workload.saves / 2, workload.version, container)
            default: try await save(&library, workload.saves, workload.version, container)
            }
        }
    }

    func save(_ library: inout Library, _ count: Int, _ version: LibraryModel, _ container: PersistentContainer) async throws {
        let context = container.coordinator.newBackgroundContext(name: "writer \(library.writer)")
        var random = SeededGenerator(seed: library.seed &+ UInt64(library.saves))
        for _ in 0..<count {
            let number = library.saves
            let step = library.advance()
            let now = library
            try acknowledgements.note("start", library.writer, number)
            try await context.perform { try $0.apply(step, of: now, as: version) }
            let bound = Duration.milliseconds(Int.random(in: 1...4, using: &random))
            if step.isDurable {
                try await context.save(.durable)
            } else if Bool.random(using: &random) {
                // On SQLite, durable saves after this one are synced separately from their commits.
                try await context.perform { try $0.saveNow(.deferred(within: bound)) }
            } else {
                try await context.save(.deferred(within: bound))
            }
            try acknowledgements.note(step.isDurable ? "durable" : "deferred", library.writer, number)
            if step.isFlushed {
                try acknowledgements.note("flush", library.writer)
                try await container.flush()
                try acknowledgements.note("flushed", library.writer)
            }
            // Gives deferred saves time to become due.
            if Int.random(in: 0..<4, using: &random) == 0 { try await Task.sleep(for: .milliseconds(3)) }
        }
    }

    private func saveAtOnce(_ first: Library, _ container: PersistentContainer) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<workload.writers {
                group.addTask {
                    var library = Library(seed: first.seed, writer: writer, largestPayload: first.largestPayload)
                    try await save(&library, workload.saves / 2, .first, container)
                }
            }
            try await group.waitForAll()
        }
    }

    private func compact(_ library: inout Library, _ container: PersistentContainer) async throws {
        for round in 0..<4 {
            async let packing = container.compact(CompactionOptions(age: .any, effort: round % 2 == 0 ? .usual : .fast))
            try await save(&library, workload.saves / 4, .first, container)
            _ = try await packing
            guard place.kind == .lmdb else { continue }
            try await copy("compact-\(round)") { try await container.compactCopy(to: $0) }
        }
    }

    private func backUp(_ library: inout Library, _ container: PersistentContainer) async throws {
        for round in 0..<3 {
            async let copied: Void = copy("backup-\(round / 2)") {
                try await container.coordinator.backup(to: $0, existing: .replace)
            }
            try await save(&library, workload.saves / 5, .first, container)
            try await copied
        }
    }

    private func copy(_ name: String, _ make: @Sendable (URL) async throws -> Void) async throws {
        try acknowledgements.note("copy", name)
        try await make(place.folder.appendingPathComponent(name))
        try acknowledgements.note("copied", name)
    }
}
