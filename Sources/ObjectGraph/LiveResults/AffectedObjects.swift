import StoreInterface
import StoreModel

/// Finds the objects whose membership in a result, or whose content, may differ between two views.
///
/// Changed rows are found exactly. For conditions that follow relationships, the search walks from changed destinations back to the
/// objects that refer to them. Costs O(changes) reads, and one look-up per changed object and relationship step.
struct AffectedObjects {
    let old: PageKeepingView
    let new: PageKeepingView
    let changes: [ChangeSet]

    /// Returns all objects of the query's entity to evaluate again, ascending.
    func keys(for query: StoreQuery) throws -> [ObjectKey] {
        var related = try through(query.predicate, entity: query.entity).union(inverseEnds(of: query.entity))
        if let followed = query.followedBySort { try related.formUnion(through(followed, entity: query.entity)) }
        if old.schema.mayDangle { try related.formUnion(danglers(query.entity)) }
        let changed = changedKeys(query.entity)
        return related.isEmpty ? changed : related.union(changed).sorted()
    }

    /// Returns the objects with a row in any change set, ascending.
    private func changedKeys(_ entity: EntityIndex) -> [ObjectKey] {
        var pages: [PageNumber: UInt64] = [:]
        for set in changes {
            for page in set.change(of: entity)?.pages ?? [] {
                pages[page.number, default: 0] |= page.inserted | page.updated | page.deleted
            }
        }
        var keys: [ObjectKey] = []
        for number in pages.keys.sorted() {
            for slot in SlotIterator(pages[number] ?? 0) { keys.append(PageAddress.key(page: number, slot: slot)) }
        }
        return keys
    }

    /// Returns the objects whose to-many relationship gained or lost a member. These are both ends of changed links, and the former
    /// and present destinations of changed references.
    private func inverseEnds(of entity: EntityIndex) throws -> Set<ObjectKey> {
        var keys: Set<ObjectKey> = []
        for set in changes {
            for link in set.links {
                if old.schema.links[link.link].source == entity { keys.formUnion(link.sources) }
                if old.schema.links[link.link].destination == entity { keys.formUnion(link.destinations) }
            }
        }
        for (other, schema) in old.schema.entities.enumerated(as: EntityIndex.self) {
            for (column, columnSchema) in schema.columns.enumerated(as: ColumnIndex.self) where columnSchema.destination == entity
            {
                try addTargets(of: changedReferences(other, column), other, column, to: &keys)
                guard let position = schema.position(in: column) else { continue }
                // Moving a member changes the list that contains it.
                for key in changedReferences(other, position) {
                    if let owner = try new.value(other, key: key, column: column)?.referenceKey { keys.insert(owner) }
                }
            }
        }
        return keys
    }

    /// Returns the objects with a reference that the rule `noAction` keeps, to an object that was deleted or is there again. It is shown as
    /// nil while the object is missing.
    private func danglers(_ entity: EntityIndex) throws -> Set<ObjectKey> {
        var keys: Set<ObjectKey> = []
        for (column, definition) in old.schema.entities[entity].columns.enumerated(as: ColumnIndex.self) {
            guard let destination = definition.destination, old.schema.mayDangle(entity, column) else { continue }
            for page in changes.flatMap({ $0.change(of: destination)?.pages ?? [] }) {
                for slot in SlotIterator(page.inserted | page.deleted) {
                    let key = PageAddress.key(page: page.number, slot: slot)
                    keys.formUnion(try new.related(.referrers(entity: entity, column: column), to: key))
                }
            }
        }
        return keys
    }

    /// Returns the objects of an entity whose reference may have changed. These are inserted and deleted objects, and updated
    /// objects in pages with an update of that column.
    private func changedReferences(_ entity: EntityIndex, _ column: ColumnIndex) -> [ObjectKey] {
        var keys: [ObjectKey] = []
        for set in changes {
            for page in set.change(of: entity)?.pages ?? [] {
                let updated = page.columns.contains(column) ? page.updated : 0
                for slot in SlotIterator(page.inserted | page.deleted | updated) {
                    keys.append(PageAddress.key(page: page.number, slot: slot))
                }
            }
        }
        return keys
    }

    private func addTargets(
        of keys: some Sequence<ObjectKey>, _ entity: EntityIndex, _ column: ColumnIndex, to targets: inout Set<ObjectKey>
    ) throws {
        for key in keys {
            let before = try old.value(entity, key: key, column: column)?.referenceKey
            let after = try new.value(entity, key: key, column: column)?.referenceKey
            guard before != after else { continue }
            if let before { targets.insert(before) }
            if let after { targets.insert(after) }
        }
    }

    // MARK: Conditions that follow relationships

    /// Returns the objects of `entity` for which a condition may have changed because of related objects.
    private func through(_ predicate: StorePredicate, entity: EntityIndex) throws -> Set<ObjectKey> {
        switch predicate.form {
        case .constant, .compare, .compareColumns, .isIn, .string, .keys, .tooDeep:
            return []
        case .and(let parts), .or(let parts):
            return try parts.reduce(into: []) { try $0.formUnion(through($1, entity: entity)) }
        case .evaluated(let condition):
            return try condition.follows.reduce(into: []) { try $0.formUnion(through($1, entity: entity)) }
        case .not(let part):
            return try through(part, entity: entity)
        case .toOne(let column, let part):
            guard let destination = old.schema.entities[entity].columns[column].destination else { return [] }
            var keys: Set<ObjectKey> = []
            for key in try looked(at: part, entity: destination) {
                keys.formUnion(try new.related(.referrers(entity: entity, column: column), to: key))
            }
            return keys
        case .toMany(let relation, _, let part), .toManyCount(let relation, let part, _, _):
            return try lookers(through: relation, at: part, from: entity)
        }
    }

    /// Returns the destination objects for which a part may have changed, for any reason.
    private func looked(at part: StorePredicate, entity: EntityIndex) throws -> Set<ObjectKey> {
        try through(part, entity: entity).union(changedKeys(entity))
    }

    /// Returns the objects that refer to changed destinations, and those whose membership changed. For the root,
    /// ``inverseEnds(of:)`` finds the membership changes; for inner steps, this method does.
    private func lookers(
        through relation: Relation, at part: StorePredicate, from entity: EntityIndex
    ) throws -> Set<ObjectKey> {
        var keys = try inverseEnds(of: entity)
        for key in try looked(at: part, entity: relation.entity) {
            switch relation {
            case .referrers(let other, let column):
                if let target = try old.value(other, key: key, column: column)?.referenceKey { keys.insert(target) }
                if let target = try new.value(other, key: key, column: column)?.referenceKey { keys.insert(target) }
            case .link(let link, let direction, _):
                let back = Relation.link(link, direction == .forward ? .backward : .forward, destination: entity)
                keys.formUnion(try old.related(back, to: key))
                keys.formUnion(try new.related(back, to: key))
            }
        }
        return keys
    }
}
