import StoreInterface

/// The objects of one context by entity and key, one instance a record (S001), in the shape of the pages.
///
/// Objects are held weakly: an entry is a plain pointer that ``ManagedObject``'s deinit removes. That is sound because objects
/// are not `Sendable`, so the last release happens where the context is used. Those with unsaved changes are retained.
final class ObjectRegistry {
    /// Up to 64 registered objects.
    final class Page {
        @exclusivity(unchecked) var present: UInt64 = 0
        @exclusivity(unchecked) var objects: ContiguousArray<Unmanaged<ManagedObject>?> =
            ContiguousArray(repeating: nil, count: PageAddress.slots)
    }

    @exclusivity(unchecked) private var entities: [[UInt64: Page]]
    @exclusivity(unchecked) private var lastEntity = -1
    @exclusivity(unchecked) private var lastNumber: UInt64 = 0
    @exclusivity(unchecked) private var lastPage: Page?
    @exclusivity(unchecked) private(set) var count = 0
    /// Empty pages kept for reuse: reading objects here and there makes and drops one a read.
    @exclusivity(unchecked) private var spares: [Page] = []
    private static let maximumSpares = 64

    init(entityCount: Int) {
        entities = Array(repeating: [:], count: entityCount)
    }

    @inline(__always)
    func page(_ entity: Int, _ number: UInt64) -> Page? {
        if entity == lastEntity, number == lastNumber { return lastPage }
        guard let found = entities[entity][number] else { return nil }
        remember(entity, number, found)
        return found
    }

    private func remember(_ entity: Int, _ number: UInt64, _ page: Page) {
        lastEntity = entity
        lastNumber = number
        lastPage = page
    }

    func object(_ entity: Int, _ key: ObjectKey) -> ManagedObject? {
        page(entity, PageAddress.page(of: key))?.objects[PageAddress.slot(of: key)]?.takeUnretainedValue()
    }

    func register(_ object: ManagedObject) {
        let number = PageAddress.page(of: object.key)
        let slot = PageAddress.slot(of: object.key)
        let page: Page
        if let found = self.page(object.entity, number) {
            page = found
        } else {
            page = spares.popLast() ?? Page()
            entities[object.entity][number] = page
            remember(object.entity, number, page)
        }
        page.present |= 1 << UInt64(slot)
        page.objects[slot] = Unmanaged.passUnretained(object)
        count += 1
    }

    func forget(_ object: ManagedObject) {
        let number = PageAddress.page(of: object.key)
        let slot = PageAddress.slot(of: object.key)
        guard let page = page(object.entity, number), page.present >> UInt64(slot) & 1 != 0 else { return }
        page.present &= ~(1 << UInt64(slot))
        page.objects[slot] = nil
        count -= 1
        guard page.present == 0 else { return }
        entities[object.entity][number] = nil
        lastEntity = -1
        lastPage = nil
        if spares.count < Self.maximumSpares { spares.append(page) }
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

    /// Called when a model comes to be around an object that is already registered.
    func didWrap(_ object: ManagedObject) {
        guard object.isRetained, !object.retainsModel else { return }
        object.isRetained = false
        retain(object)
        Unmanaged.passUnretained(object).release()
    }

    /// Calls `body` with each registered object. Bodies may release objects.
    func forEach(_ body: (ManagedObject) -> Void) {
        for entity in entities.indices {
            for page in entities[entity].values { Self.forEach(in: page, page.present, body) }
        }
    }

    static func forEach(in page: Page, _ mask: UInt64, _ body: (ManagedObject) -> Void) {
        for slot in SlotIterator(mask & page.present) {
            if let object = page.objects[slot]?.takeUnretainedValue() { body(object) }
        }
    }
}
