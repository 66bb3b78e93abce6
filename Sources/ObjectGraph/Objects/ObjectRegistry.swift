import StoreInterface
import StoreModel

/// The objects of one context by entity and key, one instance per record (S001), arranged by page.
///
/// References are weak: an entry is a plain pointer that ``ManagedObject``'s `deinit` removes. Objects with unsaved changes are
/// retained. The pointers are safe if the last release happens on the context's executor. Objects are not `Sendable`, and their
/// `deinit` checks the executor like any other use (S171).
final class ObjectRegistry {
    struct PageHeader {
        var present: UInt64 = 0
        var entity: EntityIndex
        var number: PageNumber
        /// Whether the page is in the list of emptied pages.
        var isListed = false
    }

    /// Up to 64 registered objects, behind the header in one allocation.
    final class Page: ManagedBuffer<PageHeader, Unmanaged<ManagedObject>?> {
        static func make(_ entity: EntityIndex, _ number: PageNumber) -> Page {
            let buffer = Page.create(minimumCapacity: PageAddress.slots) { _ in PageHeader(entity: entity, number: number) }
            buffer.withUnsafeMutablePointerToElements { $0.initialize(repeating: nil, count: PageAddress.slots) }
            return unsafeDowncast(buffer, to: Page.self)
        }

        // Access through pointers is safe because they do not leave these bodies. A class property would be checked for exclusive
        // access at run time at each use.
        var present: UInt64 { withUnsafeMutablePointerToHeader { $0.pointee.present } }

        @inline(__always)
        func reference(_ slot: Int) -> Unmanaged<ManagedObject>? { withUnsafeMutablePointerToElements { $0[slot & 63] } }

        @inline(__always)
        subscript(slot: Int) -> ManagedObject? { reference(slot)?.takeUnretainedValue() }

        @inline(__always)
        func put(_ object: ManagedObject, at slot: Int) {
            withUnsafeMutablePointers { header, objects in
                header.pointee.present |= 1 << UInt64(slot)
                objects[slot & 63] = Unmanaged.passUnretained(object)
            }
        }

        /// Removes an object. Returns whether the page became empty and must be added to the list of emptied pages.
        @inline(__always)
        func remove(_ slot: Int) -> Bool {
            withUnsafeMutablePointers { header, objects in
                header.pointee.present &= ~(1 << UInt64(slot))
                objects[slot & 63] = nil
                guard header.pointee.present == 0, !header.pointee.isListed else { return false }
                header.pointee.isListed = true
                return true
            }
        }
    }

    /// The tables of pages by entity, up to the last entity of which an object was registered. A table retains each page, so that looking up
    /// an object counts no references.
    @exclusivity(unchecked) private var entities: ContiguousArray<NumberTable<Unmanaged<Page>>?> = []
    @exclusivity(unchecked) private(set) var count = 0
    /// The number of registrations so far, including those of objects that were deallocated.
    @exclusivity(unchecked) private(set) var registrations: UInt64 = 0
    /// Pages that became empty. They are kept for a while, because reading scattered objects would otherwise allocate and free one per
    /// read.
    @exclusivity(unchecked) private var emptied: ContiguousArray<Page> = []
    private static let maximumEmptied = 256

    deinit {
        for case let table? in entities { table.forEach { $0.release() } }
    }

    @inline(__always)
    private func table(_ entity: EntityIndex) -> NumberTable<Unmanaged<Page>>? {
        entity.rawValue < entities.count ? entities[entity] : nil
    }

    @inline(__always)
    func page(_ entity: EntityIndex, _ number: PageNumber) -> Page? { table(entity)?[number]?.takeUnretainedValue() }

    @inline(__always)
    func object(_ entity: EntityIndex, _ key: ObjectKey) -> ManagedObject? {
        table(entity)?[key.page]?._withUnsafeGuaranteedRef { $0[key.slot] }
    }

    func register(_ object: ManagedObject) {
        let number = object.key.page
        let slot = object.key.slot
        count += 1
        registrations += 1
        if let page = table(object.entity)?[number] {
            return page._withUnsafeGuaranteedRef { $0.put(object, at: slot) }
        }
        let page = Page.make(object.entity, number)
        let table = table(object.entity) ?? NumberTable()
        while entities.count <= object.entity.rawValue { entities.append(nil) }
        entities[object.entity] = table
        table[number] = .passRetained(page)
        page.put(object, at: slot)
    }

    func forget(_ object: ManagedObject) {
        let slot = object.key.slot
        guard let page = table(object.entity)?[object.key.page] else { return }
        guard page._withUnsafeGuaranteedRef({ $0.reference(slot) != nil }) else { return }
        count -= 1
        guard page._withUnsafeGuaranteedRef({ $0.remove(slot) }) else { return }
        emptied.append(page.takeUnretainedValue())
        if emptied.count >= Self.maximumEmptied { sweep() }
    }

    /// Releases the pages that are still empty.
    private func sweep() {
        for page in emptied {
            page.withUnsafeMutablePointerToHeader { header in
                header.pointee.isListed = false
                guard header.pointee.present == 0, let table = entities[header.pointee.entity] else { return }
                // The list retains the page until the sweep ends.
                table[header.pointee.number]?.release()
                table[header.pointee.number] = nil
            }
        }
        emptied.removeAll(keepingCapacity: true)
    }

    /// Retains an object with unsaved changes, through its model if there is one (S006).
    func retain(_ object: ManagedObject) {
        guard !object.isRetained else { return }
        object.isRetained = true
        if let model = object.model {
            object.retainsModel = true
            _ = Unmanaged.passUnretained(model as AnyObject).retain()
        } else {
            _ = Unmanaged.passUnretained(object).retain()
        }
    }

    /// Releases an object that is clean again. It may be deallocated before this returns.
    func release(_ object: ManagedObject) {
        guard object.isRetained else { return }
        object.isRetained = false
        if object.retainsModel {
            object.retainsModel = false
            // The model was retained while `model` pointed to it. A retained model clears that pointer only when it is deallocated.
            if let model = object.model { Unmanaged.passUnretained(model as AnyObject).release() }
        } else {
            Unmanaged.passUnretained(object).release()
        }
    }

    /// Removes the row from an object of a page, and releases the object if requested, without counting references to it.
    @inline(__always)
    func clean(_ slot: Int, of page: Page, isReleased: Bool) {
        page.reference(slot)?._withUnsafeGuaranteedRef { object in
            object.row = nil
            if isReleased { release(object) }
        }
    }

    /// Retains the model instead of the object. Called after a model was created for a registered object.
    func didWrap(_ object: ManagedObject) {
        guard object.isRetained, !object.retainsModel else { return }
        object.isRetained = false
        retain(object)
        Unmanaged.passUnretained(object).release()
    }

    /// Calls `body` with each registered object. `body` may release objects.
    func forEach(_ body: (ManagedObject) -> Void) {
        guard count > 0 else { return }
        // Collect the pages first: if `body` releases the last object of a page, the tables change.
        var pages: [Page] = []
        for case let table? in entities { table.forEach { pages.append($0.takeUnretainedValue()) } }
        for page in pages { Self.forEach(in: page, page.present, body) }
    }

    static func forEach(in page: Page, _ mask: UInt64, _ body: (ManagedObject) -> Void) {
        for slot in SlotIterator(mask & page.present) {
            if let object = page[slot] { body(object) }
        }
    }
}
