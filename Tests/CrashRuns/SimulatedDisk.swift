import Foundation
import TestSupport

/// A simulated disk. After a power cut it has everything that was synced. Of all later changes a generator chooses any part.
///
/// The model: a write, or a change of a file's size, is durable when an `fsync` or `fdatasync` of the file that began after it
/// has returned. Until then each of its 512-byte sectors is on the disk or not, independently of all others. Changes of names
/// (creation, rename, link, removal) are durable when a sync of the folder that began after them has returned. Until then the disk
/// has the changes up to some point in their order, as file systems with a journal do, or any part of them. A rename is there as a
/// whole or not at all, and a change is there only if all earlier changes of its names are.
struct SimulatedDisk {
    /// The files and names on the disk after a power cut.
    struct State {
        /// The content of each file, by the first of its names.
        var contents: [String: Data] = [:]
        /// The further names of files (hard links), each with the name under which `contents` has the file.
        var links: [String: String] = [:]
    }

    /// The kinds of loss of changes that are not durable.
    enum Loss: CaseIterable {
        case everything, nothing
        /// All changes after some moment are lost. The change at that moment is torn.
        case tail
        /// Each change is there or not.
        case some
        /// Each sector is there or not.
        case sectors
        /// One change is lost, or one of its sectors.
        case one
    }

    private enum Change {
        case write(offset: Int, bytes: Data)
        case size(Int)
    }

    private struct File {
        var durable = Data()
        var pending: [(order: Int, change: Change)] = []
    }

    private enum NameChange {
        case set(String, Int)
        case remove(String)
        case rename(String, String, Int)
        case exchange(String, String)

        /// The names that the change sets or removes.
        var names: [String] {
            switch self {
            case .set(let name, _): [name]
            case .remove(let name): [name]
            case .rename(let from, let to, _): [from, to]
            case .exchange(let a, let b): [a, b]
            }
        }
    }

    private static let sector = 512

    private var files: [Int: File] = [:]
    /// The file that currently has each inode. An inode is used again when its file is gone.
    private var numbers: [UInt64: Int] = [:]
    private var names: [String: Int] = [:]
    private var durableNames: [String: Int] = [:]
    private var pendingNames: [(order: Int, change: NameChange)] = []
    private var syncs: [String: Int] = [:]
    private var order = 0
    /// A write through a descriptor that syncs. It is durable when the next operation begins.
    private var synced: (file: Int, order: Int)?
    /// Files that are written through a map, which other records do not show.
    private(set) var mapped: Set<String> = []

    mutating func apply(_ record: WriteRecord) {
        order += 1
        if let synced { makeDurable(file: synced.file, only: synced.order) }
        synced = nil
        let file = numbers[record.inode]
        switch record.operation {
        case .create:
            files[order] = File()
            numbers[record.inode] = order
            change(.set(record.names[0], order))
        case .write, .writeSynced:
            guard let file else { return }
            files[file]?.pending.append((order, .write(offset: Int(record.offset), bytes: record.bytes)))
            if record.operation == .writeSynced { synced = (file, order) }
        case .truncate:
            guard let file else { return }
            files[file]?.pending.append((order, .size(Int(record.offset))))
        // The offset of a sync is its thread.
        case .syncBegin: syncs["\(record.process) \(record.offset) \(record.inode)"] = order
        case .syncEnd:
            guard let begin = syncs["\(record.process) \(record.offset) \(record.inode)"] else { return }
            if let file { makeDurable(file: file, before: begin) } else { makeNamesDurable(before: begin) }
        case .rename:
            guard let file = names[record.names[0]] else { return }
            change(.rename(record.names[0], record.names[1], file))
        case .link:
            guard let file = names[record.names[0]] else { return }
            change(.set(record.names[1], file))
        case .unlink: change(.remove(record.names[0]))
        case .exchange: change(.exchange(record.names[0], record.names[1]))
        case .map:
            if let file, let name = names.first(where: { $0.value == file })?.key { mapped.insert(name) }
        case .makeFolder: break
        }
    }

    /// Returns the name of the file that a record writes to.
    func name(of record: WriteRecord) -> String? {
        guard let file = numbers[record.inode] else { return nil }
        return names.first { $0.value == file }?.key
    }

    private mutating func change(_ change: NameChange) {
        Self.apply(change, to: &names)
        pendingNames.append((order, change))
    }

    private static func apply(_ change: NameChange, to names: inout [String: Int]) {
        switch change {
        case .set(let name, let file): names[name] = file
        case .remove(let name): names[name] = nil
        case .rename(let from, let to, let file):
            names[from] = nil
            names[to] = file
        case .exchange(let a, let b): (names[a], names[b]) = (names[b], names[a])
        }
    }

    private mutating func makeNamesDurable(before begin: Int) {
        for (order, change) in pendingNames where order < begin { Self.apply(change, to: &durableNames) }
        pendingNames.removeAll { $0.order < begin }
    }

    private mutating func makeDurable(file: Int, before begin: Int = .max, only: Int? = nil) {
        guard var of = files.removeValue(forKey: file) else { return }
        let isCovered = { (order: Int) in only.map { $0 == order } ?? (order < begin) }
        for (order, change) in of.pending where isCovered(order) { Self.apply(change, to: &of.durable) { _ in true } }
        of.pending.removeAll { isCovered($0.order) }
        files[file] = of
    }

    /// Applies those sectors of a change for which `keeps` returns true.
    private static func apply(_ change: Change, to content: inout Data, keeps: (Int) -> Bool) {
        switch change {
        case .size(let size):
            guard keeps(0) else { return }
            if size < content.count { content = content.prefix(size) } else { content.append(Data(count: size - content.count)) }
        case .write(let offset, let bytes):
            let end = offset + bytes.count
            var start = offset
            while start < end {
                // Sectors begin at multiples of their size in the file.
                let next = min(end, (start / sector + 1) * sector)
                if keeps(start / sector) {
                    if content.count < next { content.append(Data(count: next - content.count)) }
                    content.replaceSubrange(start..<next, with: bytes[start - offset..<next - offset])
                }
                start = next
            }
        }
    }

    // MARK: Power cuts

    /// Returns what is on the disk after a power cut now.
    func state(_ loss: Loss, _ random: inout SeededGenerator) -> State {
        var names = durableNames
        for change in keptNames(loss, &random) { Self.apply(change, to: &names) }
        var state = State()
        var firstNames: [Int: String] = [:]
        for (name, number) in names.sorted(by: { $0.key < $1.key }) {
            if let first = firstNames[number] {
                state.links[name] = first
            } else if let file = files[number] {
                firstNames[number] = name
                state.contents[name] = content(file, loss, &random)
            }
        }
        return state
    }

    /// Returns the changes of names that the disk has kept although they are not durable.
    private func keptNames(_ loss: Loss, _ random: inout SeededGenerator) -> [NameChange] {
        let changes = pendingNames.map(\.change)
        switch loss {
        case .everything: return []
        case .nothing: return changes
        default:
            guard Bool.random(using: &random) else {
                return Array(changes.prefix(Int.random(in: 0...changes.count, using: &random)))
            }
            return Self.anyPart(of: changes, &random)
        }
    }

    /// Returns any part of the changes in which each name has its earlier changes if it has a later one.
    private static func anyPart(of changes: [NameChange], _ random: inout SeededGenerator) -> [NameChange] {
        let chance = [0.1, 0.5, 0.9].randomElement(using: &random) ?? 0.5
        var kept: [NameChange] = []
        var lostNames: Set<String> = []
        for change in changes {
            let isThere = Double.random(in: 0..<1, using: &random) < chance
            if isThere, lostNames.isDisjoint(with: change.names) {
                kept.append(change)
            } else {
                lostNames.formUnion(change.names)
            }
        }
        return kept
    }

    private func content(_ file: File, _ loss: Loss, _ random: inout SeededGenerator) -> Data {
        var content = file.durable
        let count = file.pending.count
        guard count > 0 else { return content }
        let chance = [0.1, 0.5, 0.9].randomElement(using: &random) ?? 0.5
        let chosen = Int.random(in: 0..<count, using: &random)
        let wholly = Bool.random(using: &random)
        for (position, (_, change)) in file.pending.enumerated() {
            let isThere = Double.random(in: 0..<1, using: &random) < chance
            var generator = SeededGenerator(seed: random.next())
            Self.apply(change, to: &content) { _ in
                switch loss {
                case .everything: false
                case .nothing: true
                case .tail: position < chosen || (position == chosen && Double.random(in: 0..<1, using: &generator) < chance)
                case .some: isThere
                case .sectors: Double.random(in: 0..<1, using: &generator) < chance
                case .one: position != chosen || (!wholly && Double.random(in: 0..<1, using: &generator) < 0.9)
                }
            }
        }
        return sized(content, file, &random)
    }

    /// A file's size may reach the disk before or after data that was written beyond the old end.
    private func sized(_ content: Data, _ file: File, _ random: inout SeededGenerator) -> Data {
        let ends = file.pending.map { _, change in
            switch change {
            case .size(let size): size
            case .write(let offset, let bytes): offset + bytes.count
            }
        }
        let hasSizes = file.pending.contains { if case .size = $0.change { true } else { false } }
        switch Int.random(in: 0..<4, using: &random) {
        case 0 where !hasSizes && content.count > file.durable.count: return content.prefix(file.durable.count)
        case 1 where !hasSizes: return content + Data(count: max(0, (ends.max() ?? 0) - content.count))
        default: return content
        }
    }
}
