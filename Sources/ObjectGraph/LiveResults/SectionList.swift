import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The sections of a live result: runs of objects with the same value of the first sort, in the order of the result.
///
/// A change of k objects costs O(k log s) for s sections, and O(s) if a section appears or disappears.
struct SectionList: Sendable {
    private(set) var values: [Value] = []
    private(set) var counts: [Int] = []
    private let sort: StoreSort
    /// The type of the property by which the result has sections.
    private let type: ColumnType?

    init(_ sort: StoreSort, of entity: EntityIndex, _ schema: StoreSchema) {
        self.sort = sort
        let owner = sort.path.reduce(entity) { schema.entities[$0].columns[$1].destination ?? $0 }
        type = schema.entities[owner].columns[sort.column].type
    }

    /// Adds an object that comes after all objects so far.
    mutating func append(_ value: Value) {
        if let last = values.last, last.order(value) == 0 {
            counts[counts.count - 1] += 1
        } else {
            values.append(value)
            counts.append(1)
        }
    }

    /// Adds an object.
    mutating func insert(_ value: Value) {
        let (index, isFound) = place(of: value)
        if isFound {
            counts[index] += 1
        } else {
            values.insert(value, at: index)
            counts.insert(1, at: index)
        }
    }

    /// Removes an object, and its section with the last object.
    ///
    /// - Precondition: The list has an object with the value.
    mutating func remove(_ value: Value) {
        let (index, isFound) = place(of: value)
        precondition(isFound, "no section of a live result has the value of a removed object")
        counts[index] -= 1
        guard counts[index] == 0 else { return }
        values.remove(at: index)
        counts.remove(at: index)
    }

    private func place(of value: Value) -> (index: Int, isFound: Bool) {
        var low = 0
        var high = values.count
        while low < high {
            let middle = (low + high) / 2
            let order = sort.orderOfConverted(values[middle], value)
            if order == 0 { return (middle, true) }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return (low, false)
    }

    /// Returns the sections within a range of positions. O(s).
    func sections(in window: Range<Int>) -> [ResultSection] {
        var sections: [ResultSection] = []
        var end = 0
        for (value, count) in zip(values, counts) {
            let start = end
            end += count
            let visible = (start..<end).clamped(to: window)
            guard !visible.isEmpty else { continue }
            sections.append(
                ResultSection(
                    value: value, type: type,
                    range: (visible.lowerBound - window.lowerBound)..<(visible.upperBound - window.lowerBound)))
        }
        return sections
    }
}

/// A section of a live result: the objects with one value of the property by which it has sections.
///
/// ```swift
/// for section in songs.sections {
///     print(section.name)
///     for song in songs[section.range] { print("  \(song.title)") }
/// }
/// ```
public struct ResultSection: Sendable, Hashable {
    /// The value that the objects of the section have in common; null for objects without one.
    public let value: Value
    let type: ColumnType?
    /// The positions of the objects in the snapshot. Sections have objects, and each begins where the last one ends.
    public let range: Range<Int>

    /// The value as text; empty for null.
    public var name: String {
        switch value {
        case .null: ""
        case .string(let text): text
        // Decimals are stored as bytes.
        case .data: Decimal(value).flatMap { $0.storeValue == value ? "\($0)" : nil } ?? "\(value)"
        default: value.text(as: type)
        }
    }
}

/// The place of an object in a live result with sections.
///
/// ```swift
/// let place = SectionPosition(section: 2, item: 0)
/// let track = results.snapshot[results.sections[place.section].range.lowerBound + place.item]
/// ```
public struct SectionPosition: Sendable, Hashable, Comparable {
    /// The number of the section.
    public var section: Int
    /// The position in the section.
    public var item: Int

    /// Creates a place.
    ///
    /// - Parameters:
    ///   - section: The number of the section, from 0.
    ///   - item: The position in the section, from 0.
    public init(section: Int, item: Int) {
        self.section = section
        self.item = item
    }

    /// Returns whether one place comes before another.
    public static func < (a: SectionPosition, b: SectionPosition) -> Bool { (a.section, a.item) < (b.section, b.item) }
}

extension [ResultSection] {
    /// Returns the place of a position of the snapshot. O(log sections).
    func place(of position: Int) -> SectionPosition {
        var low = 0
        var high = count
        while high - low > 1 {
            let middle = (low + high) / 2
            if self[middle].range.lowerBound <= position { low = middle } else { high = middle }
        }
        return SectionPosition(section: low, item: position - self[low].range.lowerBound)
    }
}
