import StoreInterface
import StoreModel

/// The content of objects as text, for messages, logs and debuggers (S172).
///
/// Printing reads at most the object's own record. It runs no hooks, and leaves out to-many relationships.
extension ManagedObject: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The entity, the id and the values: `Track(id: 12, title: "Baguette", plays: 3, album: Album(id: 4))`.
    ///
    /// The text says whether the object is deleted, or not inserted. Decimals are numbers, and values of `Codable` types are JSON. Long
    /// strings and long JSON are cut, and data is shown as its size.
    public var description: String {
        let content = content
        let parts = [content.state].compactMap(\.self) + content.properties.map { "\($0.name): \($0.text)" }
        return "\(content.entity)(\(parts.joined(separator: ", ")))"
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// The state and the values as children.
    public var customMirror: Mirror {
        let content = content
        let state = content.state.map { [(label: "state" as String?, value: $0 as Any)] } ?? []
        return Mirror(self, children: state + content.properties.map { ($0.name as String?, $0.value) }, displayStyle: .class)
    }

    private struct Content {
        var entity: String
        /// The state of an object that has no values to show, or that is not in the store.
        var state: String?
        var properties: [Property] = []

        mutating func add(_ name: String, text: String, value: Any) {
            properties.append(.init(name: name, text: text, value: value))
        }
    }

    private struct Property {
        var name: String
        var text: String
        var value: Any
    }

    private var content: Content {
        arrive()
        switch state {
        case .detached: return detachedContent
        case .registered: return withContext { registeredContent($0) }
        case .invalid:
            let name = model.map { Swift.type(of: $0).entityDescription.name } ?? "Object"
            return Content(entity: name, state: "id: \(key), no longer in a context")
        }
    }

    private var detachedContent: Content {
        guard let detachedState, let row else { return Content(entity: "Object", state: "not inserted") }
        let entity = detachedState.entity
        var content = Content(entity: entity.name, state: "not inserted")
        for (column, property) in entity.columns.enumerated(as: ColumnIndex.self) {
            if let relationship = property.relationship {
                let text = detachedState.toOne[relationship]?.object.map { $0.reference } ?? "nil"
                content.add(property.name, text: text, value: text)
            } else {
                let value = row.isSet(column) ? row[column] : entity.defaults[column]
                content.add(property.name, text: property.form.text(value), value: property.form.child(value))
            }
        }
        return content
    }

    private func registeredContent(_ context: ManagedObjectContext) -> Content {
        let definition = context.definition(of: self)
        var content = Content(entity: definition.name)
        let view = context.layerStack.view
        guard !isDeletedHere, (try? context.exists(entity, key)) != false else {
            content.state = "id: \(key), deleted"
            return content
        }
        content.add("id", text: "\(key)", value: key)
        for column in definition.declaredColumns {
            let name = definition.columns[column].name
            guard let value = own(column) ?? (try? view.value(entity, key: key, column: column)) else {
                content.add(name, text: "not readable", value: "not readable")
                continue
            }
            let form = definition.form(of: column, in: context.storedModel)
            content.add(name, text: form.text(value), value: form.child(value))
        }
        return content
    }

    private func own(_ column: ColumnIndex) -> Value? {
        guard let row, row.isSet(column) else { return nil }
        return row[column]
    }

    /// The entity and the id alone.
    private var reference: String {
        switch state {
        case .detached: "\(detachedState?.entity.name ?? "Object")(not inserted)"
        case .registered: "\(definition.name)(id: \(key))"
        case .invalid: "Object(id: \(key), no longer in a context)"
        }
    }
}

extension PersistentModel {
    /// The entity, the id and the values of the object: `Track(id: 12, title: "Baguette", plays: 3)`. See
    /// ``ManagedObject/description``.
    public var description: String {
        if managedObject.state == .detached { managedObject.claim(self) }
        return managedObject.description
    }

    /// The same as `description`.
    public var debugDescription: String { description }

    /// The values of the object as children.
    public var customMirror: Mirror { managedObject.customMirror }
}
