import ObjectGraph
import StoreInterface
import StoreModel

/// The data that could not be read from a damaged store.
final class DamageReport {
    /// The number of objects that were left out, by entity.
    private(set) var lostObjects: [String: Int] = [:]
    /// The number of pages that could not be read at all, by entity. A page has up to 64 objects.
    private(set) var lostPages: [String: Int] = [:]
    /// The entities whose list of pages could not be read.
    private(set) var lostEntities: [String] = []
    /// The number of optional values that became null, by column.
    private(set) var lostValues: [String: Int] = [:]
    /// The number of objects whose links could not be read.
    private(set) var lostLinks = 0

    var isEmpty: Bool {
        lostObjects.isEmpty && lostPages.isEmpty && lostEntities.isEmpty && lostValues.isEmpty && lostLinks == 0
    }

    /// The losses, one line each.
    var lines: [String] {
        lostEntities.map { "\($0): all objects are lost, because the list of their pages cannot be read" }
            + Self.sorted(lostPages).map { "\($0): \($1) pages are lost, with up to 64 objects each" }
            + Self.sorted(lostObjects).map { "\($0): \($1) objects are lost" }
            + Self.sorted(lostValues).map { "\($0): \($1) values became nil" }
            + (lostLinks > 0 ? ["the links of \(lostLinks) objects are lost"] : [])
    }

    private static func sorted(_ counts: [String: Int]) -> [(String, Int)] {
        counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    fileprivate func noteEntity(_ name: String) { lostEntities.append(name) }
    fileprivate func noteLinks() { lostLinks += 1 }
    fileprivate func notePage(_ name: String) { lostPages[name, default: 0] += 1 }
    func noteObject(_ name: String) { lostObjects[name, default: 0] += 1 }
    fileprivate func noteValue(_ name: String) { lostValues[name, default: 0] += 1 }
}

/// Reading that leaves out what is damaged. nil passes every error on. Pages are checked in both cases: a copy of a damaged value would
/// have a right checksum.
extension DamageReport? {
    /// Runs a read. After an error of damage, notes it and returns nil.
    private func salvaging<R>(_ read: () throws -> R, _ note: (DamageReport) -> Void) throws -> R? {
        do { return try read() } catch let error as StoreError where error.code == .damaged && self != nil {
            if let self { note(self) }
            return nil
        }
    }

    func pages(_ table: SalvagedTable, _ snapshot: any StoreSnapshot) throws -> [PageNumber] {
        try salvaging({ try snapshot.pageNumbers(table.entity) }) { $0.noteEntity(table.name) } ?? []
    }

    func page(_ number: PageNumber, of table: SalvagedTable, in snapshot: any StoreSnapshot) throws -> (any StorePage)? {
        guard let page = try salvaging({ try snapshot.checkedPage(table.entity, number) }, { $0.notePage(table.name) }) else {
            return nil
        }
        // The list of the pages has the number in a wrong place, where no look-up finds it.
        if page == nil { self?.notePage(table.name) }
        return page
    }

    /// Returns the slots of a page whose objects can be copied: those whose required values are whole, and whose entity is not abstract.
    func presence(_ page: any StorePage, _ table: SalvagedTable) throws -> UInt64 {
        let presence = page.presence
        guard let self else { return presence }
        let types = table.schema.typesOfObjects
        var whole: UInt64 = 0
        for slot in SlotIterator(presence) {
            let isWhole = try salvaging({
                _ = try page.version(slot)
                for (column, definition) in table.schema.columns.enumerated(as: ColumnIndex.self) where !definition.isOptional {
                    _ = try page.value(slot, column)
                }
                guard let column = table.schema.typeColumn, case .int(let type) = try page.value(slot, column) else {
                    return types.contains(0)
                }
                return types.contains(type)
            }) { _ in }
            if isWhole == true { whole |= 1 << UInt64(slot) }
        }
        // A page that cannot be read at all shows all slots as present.
        if whole == 0, presence == ~0 {
            self.notePage(table.name)
        } else {
            for _ in 0..<(presence & ~whole).nonzeroBitCount { self.noteObject(table.name) }
        }
        return whole
    }

    func value(_ page: any StorePage, slot: Int, column: ColumnIndex, definition: ColumnSchema) throws -> Value {
        guard definition.isOptional else { return try page.value(slot, column) }
        return try salvaging({ try page.value(slot, column) }) { $0.noteValue(definition.name) } ?? .null
    }

    func related(_ relation: Relation, to key: ObjectKey, _ snapshot: any StoreSnapshot) throws -> [ObjectKey] {
        try salvaging({ try snapshot.related(relation, to: key) }) { $0.noteLinks() } ?? []
    }
}
