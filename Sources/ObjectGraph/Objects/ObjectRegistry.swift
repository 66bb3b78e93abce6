import StoreInterface

/// The objects of one context by entity and key, one instance a record (S001), in the shape of the pages.
///
/// Objects are held weakly: an entry is a plain pointer that ``ManagedObject``'s deinit removes. That is sound as long as the last
/// release happens where the context is used; objects are not `Sendable`, and their deinit checks it like any other use (S171). Those with unsaved changes are retained.
final class ObjectRegistry {
    struct PageHeader {
        var present: UInt64 = 0
        var entity: Int
        var number: UInt64
        /// Whether the page is among ``emptied``.
        var isListed = false
    }

    /// Up to 64 registered objects, behind the header in one allocation.
    final class Page: ManagedBuffer<PageHeader, Unmanaged<ManagedObject>?> {
        static func make(_ entity: Int, _ number: UInt64) -> Page {
            let buffer = Page.create(minimumCapacity: PageAddress.slots) { _ in PageHeader(entity: entity, number: number) }
            buffer.withUnsafeMutablePointerToElements { $0.initialize(repeating: nil, count: PageAddress.slots) }
            return unsafeDowncast(buffer, to: Page.self)
        }

        // Through pointers, which are right because they do not leave these bodies: a class property would be checked for
        // exclusive access at run time at each use.
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

        /// Whether the page became empty and should be listed as such.
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

    /// By entity; nil until the first object is registered. Each page is retained by its place here, so that looking up an object
    /// counts no references.
    @exclusivity(unchecked) private var entities: ContiguousArray<NumberTable<Unmanaged<Page>>?>
    @exclusivity(unchecked) private(set) var count = 0
    /// Pages that became empty: kept for a while, because reading objects here and there makes and drops one a read.
    @exclusivity(unchecked) private var emptied: ContiguousArray<Page> = []
    private static let maximumEmptied = 256

    init(entityCount: Int) {
        entities = ContiguousArray(repeating: nil, count: entityCount)
    }

    deinit {
        for case let table? in entities { table.forEach { $0.release() } }
    }

    @inline(__always)
    func page(_ entity: Int, _ number: UInt64) -> Page? { entities[entity]?[number]?.takeUnretainedValue() }

    @inline(__always)
    func object(_ entity: Int, _ key: ObjectKey) -> ManagedObject? {
        entities[entity]?[PageAddress.page(of: key)]?._withUnsafeGuaranteedRef { $0[PageAddress.slot(of: key)] }
    }

    func register(_ object: ManagedObject) {
        let number = PageAddress.page(of: object.key)
        let slot = PageAddress.slot(of: object.key)
        count += 1
        if let page = entities[object.entity]?[number] {
            return page._withUnsafeGuaranteedRef { $0.put(object, at: slot) }
        }
        let page = Page.make(object.entity, number)
        let table = entities[object.entity] ?? NumberTable()
        entities[object.entity] = table
        table[number] = .passRetained(page)
        page.put(object, at: slot)
    }

    func forget(_ object: ManagedObject) {
        let slot = PageAddress.slot(of: object.key)
        guard let page = entities[object.entity]?[PageAddress.page(of: object.key)] else { return }
        guard page._withUnsafeGuaranteedRef({ $0.reference(slot) != nil }) else { return }
        count -= 1
        guard page._withUnsafeGuaranteedRef({ $0.remove(slot) }) else { return }
        emptied.append(page.takeUnretainedValue())
        if emptied.count >= Self.maximumEmptied { sweep() }
    }

    /// Lets go of the pages that are still empty.
    private func sweep() {
        for page in emptied {
            page.withUnsafeMutablePointerToHeader { header in
                header.pointee.isListed = false
                guard header.pointee.present == 0, let table = entities[header.pointee.entity] else { return }
                // The list holds the page until it has been looked through.
                table[header.pointee.number]?.release()
                table[header.pointee.number] = nil
            }
        }
        emptied.removeAll(keepingCapacity: true)
    }

    /// Holds an object with unsaved changes strongly, through its model where it has one (S006).
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

    /// Lets go of an object that is clean again. It may be deallocated before this returns.
    func release(_ object: ManagedObject) {
        guard object.isRetained else { return }
        object.isRetained = false
        if object.retainsModel {
            object.retainsModel = false
            // The model was retained while `model` pointed to it, and a retained model clears that pointer only when it goes.
            if let model = object.model { Unmanaged.passUnretained(model as AnyObject).release() }
        } else {
            Unmanaged.passUnretained(object).release()
        }
    }

    /// Takes the row from an object of a page, and lets go of the object if so told. No reference is counted to what goes.
    @inline(__always)
    func clean(_ slot: Int, of page: Page, isReleased: Bool) {
        page.reference(slot)?._withUnsafeGuaranteedRef { object in
            object.row = nil
            if isReleased { release(object) }
        }
    }

    /// Called when a model comes to be around an object that is already registered.
    func didWrap(_ object: ManagedObject) {
        guard object.isRetained, !object.retainsModel else { return }
        object.isRetained = false
        retain(object)
        Unmanaged.passUnretained(object).release()
    }

    /// Calls `body` with each registered object. Bodies may release objects.
    func forEach(_ body: (ManagedObject) -> Void) {
        guard count > 0 else { return }
        // Gathered first: a body that releases the last object of a page changes the tables.
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
