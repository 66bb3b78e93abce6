import LMDB
import PageCodec
import StoreInterface
import StoreModel

/// A writer of the rows of one layer and entity: pages in ascending order, then each index in the order of its keys.
struct EntityWriter {
    private let store: LMDBStore
    private let opened: LMDBTransaction
    private let transaction: WriteTransaction
    private let entity: EntityIndex
    private let layout: PageLayout
    private let numbers: CommitNumbers
    private let indexes: [Tables.Index]
    private var changes: [IndexChanges]
    /// The end of the pages that each index contains. The index gets the other pages when it is built.
    private let builtPages: [PageNumber]
    /// The existing objects that were deleted.
    private(set) var deleted: [ObjectKey] = []

    init(_ transaction: LMDBTransaction, entity: EntityIndex, numbers: CommitNumbers) {
        self.numbers = numbers
        store = transaction.store
        opened = transaction
        self.transaction = transaction.transaction
        self.entity = entity
        layout = store.layouts[entity]
        indexes = store.tables.indexes[entity]
        let schema = store.schema.entities[entity]
        changes = indexes.map { IndexChanges($0, schema) }
        builtPages = indexes.map { transaction.builtPages(of: $0) }
    }

    mutating func apply(_ rows: EntityLayer) throws {
        try writePages(rows)
        for index in changes.indices { try changes[index].write(in: transaction) }
    }

    private mutating func writePages(_ rows: EntityLayer) throws {
        try transaction.withCursor(store.tables.pages[entity]) { cursor in try writePages(rows, at: cursor) }
    }

    private mutating func writePages(_ rows: EntityLayer, at cursor: Cursor) throws {
        let last = try cursor.move(.last)?.pageNumber
        var isAppending = last == nil
        for number in rows.sortedPageNumbers {
            guard let page = rows.page(number) else { continue }
            if let last, !isAppending { isAppending = number > last }
            // Pages before the end are looked up; beyond the end there are none.
            let found = isAppending ? nil : try cursor.find(number.rawValue)
            let hadTail = found.map { PackedPage.missingByteCount($0.value) > 0 } ?? false
            let made = try merged(found?.value, with: page, number: number, at: cursor)
            // From here on, the old page's bytes may be overwritten.
            if made.page.byteCount == 0 {
                if found != nil { try cursor.delete() }
            } else {
                made.page.write(
                    into: try cursor.reserve(
                        number.rawValue, byteCount: made.page.byteCount, order: isAppending ? .ascending : .any))
            }
            if hadTail { try store.pageOverflow.delete(entity, number, in: transaction) }
            for record in made.dropped { try opened.deleteLarge(record, entity) }
        }
    }

    /// A page to be written, and the large values that no page needs any more.
    private struct MadePage {
        var page: PageMerge
        var dropped: [LargeValueRecord]
    }

    /// Merges a layer's page with the old page.
    /// - Parameter cursor: At the old page, if there is one, before and after the call.
    private mutating func merged(
        _ bytes: UnsafeRawBufferPointer?, with page: LayerPage, number: PageNumber, at cursor: Cursor
    ) throws -> MadePage {
        // A packed page is unpacked here and written raw.
        let unpacked = try bytes.flatMap { bytes in
            PackedPage.isPacked(bytes)
                ? try store.unpacked(bytes, entity: entity, number: number, for: .writing, in: transaction) : nil
        }
        defer { withExtendedLifetime(unpacked) {} }
        let large = LargeValues(opened, entity: entity)
        do {
            var old = try (unpacked?.bytes ?? bytes).map { bytes throws(PageError) in
                try ObjectPage(bytes, layout: layout, number: number, check: .checksum, large: large)
            }
            if let old {
                for slot in SlotIterator(old.presence & page.deleted) {
                    deleted.append(PageAddress.key(page: number, slot: slot))
                }
            }
            if !indexes.isEmpty { try noteIndexChanges(old, page: page, number: number) }
            var draft = try PageDraft(
                old: old, changes: page, layout: layout, number: number, limit: store.options.largestValueInPage,
                numbers: numbers)
            if !draft.largeValues.isEmpty {
                try writeLarge(page, &draft)
                // This may have moved the old page's bytes, unless they are unpacked.
                if let found = try cursor.find(number.rawValue), unpacked == nil {
                    old = try ObjectPage(found.value, layout: layout, check: .header, large: large)
                }
            }
            let merge = try draft.merge(old: old)
            return MadePage(page: merge, dropped: try dropped(old, merge))
        } catch let error as PageError {
            if !error.isOfValue { throw StoreError.damagedPage(store, entity: entity, number: number, error: error) }
            throw StoreError(
                .valueTooLarge, "\(error.field) \(error.reason). Change the value or the column's type", cause: error)
        }
    }

    /// Writes the values that are too large for a page.
    private func writeLarge(_ page: LayerPage, _ draft: inout PageDraft) throws {
        for place in draft.largeValues {
            guard let row = page[place.slot] else { continue }
            draft.place(try opened.writeLarge(row[place.column], entity: entity, column: place.column), at: place)
        }
    }

    /// Returns the large values of an old page that the new page does not have.
    private func dropped(_ old: ObjectPage?, _ merge: PageMerge) throws -> [LargeValueRecord] {
        guard let old, old.hasLargeValues else { return [] }
        var dropped: [LargeValueRecord] = []
        try old.eachLargeValue { record, _ in dropped.append(record) }
        guard merge.byteCount > 0 else { return dropped }
        var kept: Set<UInt64> = []
        try merge.withBytes { bytes in
            try ObjectPage(bytes, layout: layout, check: .header).eachLargeValue { record, _ in kept.insert(record.number) }
        }
        return dropped.filter { !kept.contains($0.number) }
    }

    private mutating func noteIndexChanges(_ old: ObjectPage?, page: LayerPage, number: PageNumber) throws {
        let present = old?.presence ?? 0
        for slot in SlotIterator(page.touched) {
            guard let row = page[slot] else { continue }
            let key = PageAddress.key(page: number, slot: slot)
            let wasPresent = present >> UInt64(slot) & 1 != 0
            let isDeleted = row.kind == .delete
            if isDeleted, !wasPresent { continue }
            let set = row.set
            // The rule of `PageMerge`: an update of a missing object counts only if it is complete.
            if !isDeleted, !wasPresent, row.kind == .update, set.count != layout.entity.columns.count { continue }
            for index in changes.indices where number < builtPages[index] {
                if indexes[index].isCompound {
                    try noteCompoundChange(index, old: wasPresent ? old : nil, row: isDeleted ? nil : row, slot: slot, key: key)
                    continue
                }
                let column = indexes[index].column
                guard isDeleted || set.contains(column) else { continue }
                let new = isDeleted ? nil : row[column]
                guard wasPresent, let old else {
                    if let new { try changes[index].add(new, key) }
                    continue
                }
                let before = try old.value(slot, column)
                if before == new { continue }
                try changes[index].remove(before, key)
                if let new { try changes[index].add(new, key) }
            }
        }
    }

    /// Records the change of an object for an index over several columns.
    /// - Parameters:
    ///   - old: The page that has the object; nil if the object is new.
    ///   - row: The row to write; nil if the object is deleted.
    private mutating func noteCompoundChange(
        _ index: Int, old: ObjectPage?, row: Row?, slot: Int, key: ObjectKey
    ) throws {
        let columns = indexes[index].columns
        if let row, !columns.contains(where: row.isSet) { return }
        let before = try old.map { page in try columns.map { try page.value(slot, $0) } }
        let after = row.map { row in
            columns.indices.map { row.isSet(columns[$0]) ? row[columns[$0]] : before?[$0] ?? .null }
        }
        if before == after { return }
        if let before { try changes[index].remove(before, key) }
        if let after { try changes[index].add(after, key) }
    }
}
