import StoreInterface
import StoreModel

/// A record of the objects that changed in a context since changes were last processed. Empty unless the context has observers.
struct ChangeLog {
    /// Whether the context has observers. Without observers, changes are counted but not recorded.
    var isOn = false {
        didSet { watch() }
    }
    /// The gate of children's saves, which the next change closes; nil if it is closed.
    private var gate: DirectSaveGate?
    /// Whether a change needs more than to be counted.
    private var isWatching = false
    /// A closure called at the first change after ``forgetUnsavedChange()``; nil for none. It must not use the context.
    var onFirstUnsavedChange: (() -> Void)? {
        didSet { forgetUnsavedChange() }
    }
    private var hasUnsavedChange = false
    /// The number of changes, recorded or not.
    private(set) var count = 0
    /// A closure called when the first change is recorded in the empty log; nil for none. It must not change the log.
    var onFirstChange: (() -> Void)?
    private var touched: Set<ObjectAddress> = []
    /// The recorded objects that are new.
    private(set) var inserted: Set<ObjectAddress> = []
    private var links: Set<ChangedPair> = []
    /// The slots of unsaved new objects whose insertion no notice has named, because there was no observer of notices (S041).
    private(set) var unnamed: [EntityIndex: [PageNumber: UInt64]] = [:]

    struct ChangedPair: Hashable {
        var link: LinkIndex
        var source: ObjectKey
        var destination: ObjectKey
    }

    var isEmpty: Bool { touched.isEmpty && links.isEmpty }

    @inline(__always)
    mutating func note(_ entity: EntityIndex, _ key: ObjectKey) {
        count &+= 1
        guard isWatching, records() else { return }
        if let onFirstChange, isEmpty { onFirstChange() }
        touched.insert(ObjectAddress(entity: entity, key: key))
    }

    @inline(__always)
    mutating func noteInsertion(_ entity: EntityIndex, _ key: ObjectKey) {
        note(entity, key)
        if isOn { inserted.insert(ObjectAddress(entity: entity, key: key)) }
    }

    mutating func noteLink(_ link: LinkIndex, from source: ObjectKey, to destination: ObjectKey) {
        count &+= 1
        guard isWatching, records() else { return }
        if let onFirstChange, isEmpty { onFirstChange() }
        links.insert(ChangedPair(link: link, source: source, destination: destination))
    }

    /// Reports the first unsaved change. Returns whether changes are recorded.
    @inline(never)
    private mutating func records() -> Bool {
        noteUnsavedChange()
        return isOn
    }

    /// Calls ``onFirstUnsavedChange`` if there was no change since ``forgetUnsavedChange()``.
    mutating func noteUnsavedChange() {
        closeGate()
        guard !hasUnsavedChange, let onFirstUnsavedChange else { return }
        hasUnsavedChange = true
        watch()
        onFirstUnsavedChange()
    }

    /// Makes the next change the first one.
    mutating func forgetUnsavedChange() {
        hasUnsavedChange = false
        watch()
    }

    private mutating func watch() { isWatching = isOn || gate != nil || onFirstUnsavedChange != nil && !hasUnsavedChange }

    /// Makes the next change close a gate that is open.
    mutating func willClose(_ gate: DirectSaveGate) {
        self.gate = gate
        watch()
    }

    mutating func closeGate() {
        guard let gate else { return }
        gate.close()
        self.gate = nil
        watch()
    }

    /// Returns whether no notice has named the insertion of an object (S041).
    func isUnnamed(_ entity: EntityIndex, _ key: ObjectKey) -> Bool {
        inserted.contains(ObjectAddress(entity: entity, key: key))
            || (unnamed[entity]?[key.page] ?? 0) >> UInt64(key.slot) & 1 != 0
    }

    /// Returns the recorded objects as a change set and empties the log.
    ///
    /// - Parameter kind: Returns the current change of an object. An object for which it returns nil is recorded as an update.
    mutating func take(_ metadata: SaveMetadata, _ kind: (EntityIndex, ObjectKey) -> RowKind?) -> ChangeSet {
        var pages: [EntityIndex: [PageNumber: ChangeSet.PageChange]] = [:]
        for place in touched {
            let number = place.key.page
            let bit: UInt64 = 1 << UInt64(place.key.slot)
            var page =
                pages[place.entity, default: [:]][number]
                ?? .init(number: number, inserted: 0, updated: 0, deleted: 0, columns: ColumnSet(first: 128))
            switch kind(place.entity, place.key) {
            case .insert: page.inserted |= bit
            case .delete: page.deleted |= bit
            case .update, nil: page.updated |= bit
            }
            pages[place.entity, default: [:]][number] = page
        }
        var set = ChangeSet(metadata: metadata)
        set.entities = pages.sorted { $0.key < $1.key }.map { entity, pages in
            .init(entity: entity, pages: pages.values.sorted { $0.number < $1.number })
        }
        set.links = Dictionary(grouping: links, by: \.link).sorted { $0.key < $1.key }.map { link, places in
            .init(
                link: link, sources: Set(places.map(\.source)).sorted(),
                destinations: Set(places.map(\.destination)).sorted())
        }
        touched = []
        inserted = []
        links = []
        return set
    }

    mutating func removeAll() {
        touched = []
        inserted = []
        links = []
        unnamed = [:]
    }

    /// Records the unsaved changes when the first observer of notices is added.
    mutating func beginNotices(over unsaved: ChangeSet) {
        unnamed = [:]
        for change in unsaved.entities {
            for page in change.pages where page.inserted != 0 {
                unnamed[change.entity, default: [:]][page.number] = page.inserted
            }
        }
    }

    /// Records that a notice names these insertions.
    mutating func didName(_ changes: ChangeSet) {
        if unnamed.isEmpty { return }
        for change in changes.entities {
            for page in change.pages where page.inserted != 0 { unnamed[change.entity]?[page.number]? &= ~page.inserted }
        }
    }
}
