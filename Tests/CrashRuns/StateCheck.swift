import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// Opens the store that a crash has left, compares it with the acknowledgements, and continues with it.
struct StateCheck {
    let place: StorePlace
    let workload: Workload
    /// For each writer its script, at any state.
    let scripts: [Library]
    let promised: Acknowledgements

    /// Returns the findings. There are none if the state keeps every promise.
    func findings() async -> [String] {
        do {
            var findings: [String] = []
            for name in try FileManager.default.contentsOfDirectory(atPath: place.folder.path).sorted()
            where Self.isCopy(name) {
                findings += try await check(
                    place.folder.appendingPathComponent(name), required: promised.copies[name] ?? [:], writes: false
                ).map { "\(name): \($0)" }
            }
            for name in promised.copies.keys.sorted() where !exists(name) { findings.append("\(name) is missing") }
            if !findings.isEmpty { return findings }
            return try await check(place.file, required: promised.required, writes: true)
        } catch {
            return ["\(error)"]
        }
    }

    private static func isCopy(_ name: String) -> Bool {
        (name.hasPrefix("backup-") || name.hasPrefix("compact-")) && !name.hasSuffix("-lock") && !name.hasSuffix("-wal")
            && !name.hasSuffix("-shm") && !name.hasSuffix("-signal") && !name.hasSuffix("-journal")
    }

    private func exists(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: place.folder.appendingPathComponent(name).path)
    }

    private func check(_ file: URL, required: [Int: Int], writes: Bool) async throws -> [String] {
        if !FileManager.default.fileExists(atPath: file.path) {
            if promised.version > 0 || !required.isEmpty { return ["the file is missing after an open had returned"] }
        }
        let stored = try place.description(file).migration?.storedSchema()?.version.major ?? LibraryModel.first.rawValue
        guard let found = LibraryModel(rawValue: stored), found.rawValue <= workload.version.rawValue else {
            return ["the file has version \(stored) of the model"]
        }
        if writes, found.rawValue < promised.version { return ["the migration to version \(promised.version) is undone"] }
        var findings = try await check(file, found, required, writes: writes)
        if findings.isEmpty, writes, found != workload.version {
            findings = try await check(file, workload.version, required, writes: true).map { "migrated: \($0)" }
        }
        return findings
    }

    private func check(_ file: URL, _ version: LibraryModel, _ required: [Int: Int], writes: Bool) async throws -> [String] {
        try await place.withContainer(version, file) { container in
            var findings = try container.coordinator.store.verify().map { "verify: \($0)" }
            if version != .first { try await container.coordinator.finishMigration() }
            var libraries: [Library] = []
            for script in scripts {
                let (library, found) = try await compare(script, required[script.writer] ?? 0, container, version)
                findings += found
                libraries.append(library)
            }
            let history = try await container.coordinator.history().filter { $0.contextName?.hasPrefix("writer") == true }.count
            let saves = libraries.reduce(0) { $0 + $1.saves }
            if history != saves {
                findings.append("the history has \(history) saves, the objects show \(saves)")
            }
            guard findings.isEmpty, writes else { return findings }
            findings += try await goOn(&libraries[0], container, version)
            return findings
        }
    }

    /// Checks that one writer's objects are those after a whole number of its saves, including the required saves.
    private func compare(
        _ script: Library, _ required: Int, _ container: PersistentContainer, _ version: LibraryModel
    ) async throws -> (Library, [String]) {
        let writer = script.writer
        let context = container.coordinator.newBackgroundContext(name: "check")
        let saves = try await context.perform { try $0.saves(of: writer) }
        let library = Library(like: script, after: saves)
        var findings = try await context.perform { try $0.differences(from: library, as: version) }
        // The saves that a check has added to a state are not in its acknowledgements.
        let started = (promised.started[writer] ?? 0) + (version == workload.version ? Self.savesMore : 0)
        if saves < required { findings.append("writer \(writer): \(required) saves were acknowledged, \(saves) are there") }
        if saves > started { findings.append("writer \(writer): \(saves) saves are there, \(started) had begun") }
        return (library, findings)
    }

    private static let savesMore = 2

    /// Makes further saves of a script and checks again.
    private func goOn(
        _ library: inout Library, _ container: PersistentContainer, _ version: LibraryModel
    ) async throws -> [String] {
        let context = container.coordinator.newBackgroundContext(name: "writer \(library.writer)")
        for _ in 0..<Self.savesMore {
            let step = library.advance()
            let now = library
            try await context.perform { try $0.apply(step, of: now, as: version) }
            try await context.save(.durable)
        }
        let now = library
        let fresh = container.coordinator.newBackgroundContext(name: "check")
        let differences = try await fresh.perform { try $0.differences(from: now, as: version) }
        return (differences + (try container.coordinator.store.verify().map { "verify: \($0)" })).map { "after saving: \($0)" }
    }
}
