import Foundation
import ObjectGraph

/// The result of an export or import, for people or programs.
struct TransferReport {
    private let pairs: Int
    private let counts: [(name: String, count: Int)]
    /// The number of entries of each keyed collection.
    private let collections: [(name: String, count: Int)]
    private let notes: [String]
    private let lost: Int
    private let target: String

    init(_ summary: TransferSummary, source: any ObjectSource, target: String) {
        pairs = summary.pairs
        counts = summary.counts(in: source.model)
        collections = summary.entries.sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) }
        notes = source.notes + summary.notes
        lost = source.lostReferences
        self.target = target
    }

    private var entries: String {
        ", \(collections.reduce(0) { $0 + $1.count }) entries of \(collections.count) collections"
    }

    /// The result as a line.
    private var line: String {
        "\(target): \(counts.reduce(0) { $0 + $1.count }) objects of \(counts.count) entities, \(pairs) related pairs"
            + (collections.isEmpty ? "" : entries)
            + (lost == 0 ? "" : "; \(lost) references to missing rows are lost")
    }

    /// Writes the notes to standard error.
    func showNotes() {
        for note in notes { Console.note(note) }
    }

    /// Writes the notes and the result to standard error, because other data is on standard output.
    func complain() {
        showNotes()
        Console.note(line)
    }

    /// Writes the result to standard output, and the notes to standard error unless they are members of the JSON.
    func show(asJSON: Bool) throws {
        if asJSON {
            let objects = counts.reduce(0) { $0 + $1.count }
            let entities = counts.map { JSON.Member(name: $0.name, value: .number($0.count)) }
            return try Console.print(
                JSON.object([
                    "file": .string(target), "objects": .number(objects), "pairs": .number(pairs),
                    "lostReferences": .number(lost), "entities": .object(entities),
                    "collections": .object(collections.map { JSON.Member(name: $0.name, value: .number($0.count)) }),
                    "notes": .array(notes.map { .string($0) }),
                ]).text)
        }
        showNotes()
        try Console.show(line)
    }
}
