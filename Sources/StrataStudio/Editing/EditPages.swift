import NIOHTTP1
import ObjectGraph
import StoreInterface
import StoreModel
import NIOConcurrencyHelpers

/// Changes of objects: each edit has a child context, in which the changes are tried before they are saved.
///
/// The child and its parent show the state of the beginning of the edit. If another context or process changes the object meanwhile, the
/// preview and the save find the conflict by the object's version.
struct EditPages: Sendable {
    /// The open edits.
    let kept: KeptValues<Edit>
    private let store: StudioStore
    private let feed: LiveFeed

    init(_ store: StudioStore, _ feed: LiveFeed) {
        self.store = store
        self.feed = feed
        kept = KeptValues(limit: 8, idleTime: store.options.idleTime)
    }

    enum Answer: Encodable, Sendable {
        case form(EditForm)
        case preview(EditPreview)
        case saved(EditResult)

        func encode(to encoder: any Encoder) throws {
            switch self {
            case .form(let form): try form.encode(to: encoder)
            case .preview(let preview): try preview.encode(to: encoder)
            case .saved(let saved): try saved.encode(to: encoder)
            }
        }
    }

    func answer(_ request: StudioRequest, _ name: String) async throws -> Answer {
        guard store.options.isWritable else {
            throw PageError(.forbidden, "nothing can be changed: the store is open for reading. Start `strata studio --write`")
        }
        switch name {
        case "edit/begin": return .form(try await begin(request.decoded()))
        case "edit/preview": return .preview(try await preview(request.decoded()))
        case "edit/save": return .saved(try await save(request.decoded()))
        case "edit/cancel":
            kept.remove(try request.decoded(EditReference.self).edit)
            return .saved(EditResult(save: nil, key: nil))
        default: throw PageError(.notFound, "\(request.path): no such page. Go back to the schema")
        }
    }

    private func edit(_ name: String) throws -> Edit {
        guard let edit = kept[name] else {
            throw PageError(
                .gone,
                "this edit was released, because it was not used for a while, or too many others were opened. Edit the object again"
            )
        }
        return edit
    }

    // MARK: Steps

    private func begin(_ target: EditTarget) async throws -> EditForm {
        let store = store
        let asked = try store.entity(target.entity)
        let id = try target.key.map { store.id(asked, try store.key($0)) }
        if id == nil, asked.isAbstract {
            throw PageError(.badRequest, "\(asked.name) is abstract. Insert an object of an entity that inherits from it")
        }
        let parent = store.coordinator.newBackgroundContext(name: "studio: edit")
        let (entity, values, lists) = try await parent.perform { context in
            context.transactionAuthor = Edit.author
            guard let id else {
                let values = asked.declaredColumns.map { asked.defaults[$0] }
                return (asked, values, try EditableList.all(of: nil, asked, store, in: context))
            }
            let entity = try store.entity(of: id, asked: asked, in: context)
            let values = try ObjectPages.values(id, entity: entity, store: store, in: context)
            return (entity, values, try EditableList.all(of: id, entity, store, in: context))
        }
        let child = await parent.newBackgroundChild(name: "studio edit")
        await child.perform { $0.transactionAuthor = Edit.author }
        let edit = Edit(entity: entity, id: id, parent: parent, child: child)
        return EditForm(
            edit: kept.add(edit),
            fields: zip(store.columns(of: entity), values).map { EditForm.Field($0, value: $1, store: store) },
            lists: lists)
    }

    private func preview(_ request: EditRequest) async throws -> EditPreview {
        let edit = try edit(request.edit)
        let number = try edit.beginPreview()
        let values = try request.values.sorted { $0.key < $1.key }.map { try edit.value($0.value, of: $0.key, store) }
        let lists = try (request.lists ?? [:]).sorted { $0.key < $1.key }.map {
            try EditedList($0.key, texts: $0.value, entity: edit.entity, store: store)
        }
        let changes = try await edit.child.perform { context in
            // Of two previews at one time, the older one may come to the child later.
            try edit.checkIsNewest(number)
            return try edit.apply(values, lists: lists, isDeletion: request.isDeletion ?? false, store: store, in: context)
        }
        let found = await edit.child.previewSave()
        let isReady = found.failure == nil && !found.changes.isEmpty
        edit.endPreview(number, isReady: isReady)
        return EditPreview(
            changes: changes, others: others(found.changes, edit), isReady: isReady, failure: found.failure.map(sentence))
    }

    private func save(_ request: EditReference) async throws -> EditResult {
        let edit = try edit(request.edit)
        guard edit.beginSave() else {
            throw PageError(
                .conflict, "nothing was saved: the changes were not previewed, or the preview failed. Preview them first")
        }
        defer { edit.endSave() }
        do {
            try await edit.child.save(through: .store)
        } catch {
            throw PageError(.conflict, "nothing was saved: \(sentence(error))")
        }
        kept.remove(request.edit)
        await feed.catchUp()
        let id = edit.id ?? edit.state.withLockedValue { $0.inserted }
        return EditResult(save: store.coordinator.currentHistoryToken.generation, key: id.map { "\($0.key)" })
    }

    /// The objects besides the edited one that a save would change, such as those whose references to a deleted object become nil.
    private func others(_ changes: ChangeSet, _ edit: Edit) -> [String] {
        let identity = store.coordinator.storeIdentity
        let edited = edit.id ?? edit.state.withLockedValue { $0.inserted }
        let kinds = [
            ("changes", changes.updatedIDs(in: identity)), ("deletes", changes.deletedIDs(in: identity)),
            ("inserts", changes.insertedIDs(in: identity)),
        ]
        let lines = kinds.flatMap { verb, ids in
            // Hidden entities have the positions of ordered relationships.
            ids.filter { $0 != edited }.compactMap { id in
                store.entity(numbered: id.entity).map { "\(verb) \($0.name) \(id.key)" }
            }
        }
        let shown = 20
        return lines.count <= shown ? lines : lines.prefix(shown) + ["… and \(lines.count - shown) more objects"]
    }

    /// The line of an error of a save, with the remedy that the page offers.
    private func sentence(_ error: any Error) -> String {
        guard case SaveError.conflicts(let conflicts) = error else { return store.language.sentence(error) }
        let list = conflicts.map(sentence).joined(separator: "; ")
        return "the object was changed by another context since the edit began: \(list). Edit it again to see the newest values"
    }

    /// The line of a conflict. The positions in ordered relationships mean nothing to a user.
    private func sentence(_ conflict: MergeConflict) -> String {
        let entities = store.model.entities
        let whole =
            entities.indices(as: EntityIndex.self).contains(conflict.objectID.entity) ? entities[conflict.objectID.entity] : nil
        var conflict = conflict
        conflict.properties.removeAll { property in
            if case .toMany? = whole?.relationship(named: property.name)?.kind { return true }
            return property.name.hasPrefix("position in ")
        }
        guard conflict.properties.isEmpty, !conflict.isDeletedHere, !conflict.isDeletedInStore else {
            return conflict.description
        }
        return "\(conflict.entityName)(id: \(conflict.objectID.key)): objects of a list were moved here and in the store"
    }
}
