import Foundation
import ObjectGraph
import StoreInterface
import StoreModel
import TestSupport

/// One recorded run of a workload, and the power cuts simulated from it.
struct PowerRun {
    let workload: Workload
    let kind: StoreKind
    let seed: UInt64
    let log: URL

    /// A state to be checked: the disk after some records, with one kind of loss.
    private struct Cut {
        var records: Int
        var loss: SimulatedDisk.Loss
        var number: Int
    }

    /// Runs the workload in this process, whose writes the preloaded library records.
    func record(in folder: URL) async throws {
        let worker = Worker(
            place: StorePlace(kind: kind, folder: folder), workload: workload,
            acknowledgements: try AcknowledgementFile(folder: folder))
        try await worker.run(seed: seed)
    }

    /// Returns the power cuts in the order of the log. A quarter of them is at records next to a sync or a change of names.
    private func cuts(_ count: Int, _ records: [WriteRecord]) -> [Cut] {
        var random = SeededGenerator(seed: seed ^ 0xC07)
        let special = records.indices.filter { ![.write, .writeSynced, .truncate].contains(records[$0].operation) }
        var cuts: [Cut] = []
        for number in 0..<count {
            var place = Int.random(in: 0...records.count, using: &random)
            if number % 4 == 0, let near = special.randomElement(using: &random) {
                place = min(records.count, near + Int.random(in: 0...2, using: &random))
            }
            let loss = SimulatedDisk.Loss.allCases.randomElement(using: &random) ?? .sectors
            cuts.append(Cut(records: place, loss: loss, number: number))
        }
        return cuts.sorted { ($0.records, $0.number) < ($1.records, $1.number) }
    }

    /// Checks the states from `first` on. Prints a line before and after each, because a state may crash the process.
    ///
    /// - Parameter only: A single state to check, whose files are kept.
    func check(_ count: Int, from first: Int, only: Int? = nil) async throws {
        let records = try WriteRecord.read(log)
        var disk = SimulatedDisk()
        var promised = Acknowledgements()
        var applied = 0
        var seen: Set<Int> = []
        let scratch = try ScratchFolder(keeps: only != nil)
        for (index, cut) in cuts(count, records).enumerated() {
            while applied < cut.records {
                disk.apply(records[applied])
                if disk.name(of: records[applied]) == AcknowledgementFile.name, records[applied].operation == .write {
                    promised.take(records[applied].bytes)
                }
                applied += 1
            }
            var random = SeededGenerator(seed: seed &+ UInt64(cut.number))
            var state = disk.state(cut.loss, &random)
            state.contents[AcknowledgementFile.name] = nil
            // A repeated state is counted once.
            let isNew = seen.insert(Self.hash(state)).inserted
            guard index >= first, only == nil || only == index else { continue }
            guard isNew || only != nil else {
                report("same \(index)")
                continue
            }
            report("state \(index) after \(cut.records) of \(records.count) records, loss: \(cut.loss)")
            let folder = try scratch.make(state)
            let check = StateCheck(
                place: StorePlace(kind: kind, folder: folder), workload: workload,
                scripts: (0..<workload.writers).map {
                    Library(seed: seed, writer: $0, largestPayload: workload.largestPayload)
                }, promised: promised)
            for finding in await check.findings().prefix(5) { report("finding \(index) \(finding)") }
            report("done \(index)")
            scratch.remove(folder)
        }
        for name in disk.mapped where !["-shm", "-lock"].contains(where: name.hasSuffix) {
            report("finding -1 \(name) is written through a map, which the recorder does not see")
        }
    }

    private static func hash(_ state: SimulatedDisk.State) -> Int {
        var hasher = Hasher()
        hasher.combine(state.links)
        for (name, bytes) in state.contents.sorted(by: { $0.key < $1.key }) {
            hasher.combine(name)
            hasher.combine(bytes.count)
            bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
        return hasher.finalize()
    }
}

/// A folder for files of one check, in memory if the system has such a place.
final class ScratchFolder {
    let folder: URL
    private let keeps: Bool
    private var count = 0

    init(keeps: Bool = false) throws {
        self.keeps = keeps
        let memory = URL(fileURLWithPath: "/dev/shm")
        let root = FileManager.default.isWritableFile(atPath: memory.path) ? memory : FileManager.default.temporaryDirectory
        folder = root.appendingPathComponent("strata-crash-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        if keeps { report("files in \(folder.path)") }
    }

    deinit { if !keeps { try? FileManager.default.removeItem(at: folder) } }

    func make(_ state: SimulatedDisk.State = SimulatedDisk.State()) throws -> URL {
        count += 1
        let made = folder.appendingPathComponent("\(count)")
        try FileManager.default.createDirectory(at: made, withIntermediateDirectories: true)
        for (name, bytes) in state.contents { try bytes.write(to: made.appendingPathComponent(name)) }
        for (name, first) in state.links {
            try FileManager.default.linkItem(at: made.appendingPathComponent(first), to: made.appendingPathComponent(name))
        }
        if keeps {
            let original = folder.appendingPathComponent("\(count)-before")
            try FileManager.default.copyItem(at: made, to: original)
        }
        return made
    }

    func remove(_ made: URL) { if !keeps { try? FileManager.default.removeItem(at: made) } }
}
