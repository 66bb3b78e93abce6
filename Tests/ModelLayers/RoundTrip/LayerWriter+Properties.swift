import StrataSwiftData

/// Compares objects of a context with values that were written; returns the differences.
typealias Check = (ModelContext) throws -> [String]

extension LayerWriter {
    /// Sets an attribute to a sample and reads it back.
    func setSample(_ keyPath: AnyKeyPath, on model: AnyModel, name: String) {
        guard let property = writable(keyPath, name: name) else { return }
        guard let sample = property.sample(samples, number: number), !isNil(sample) else {
            return failures.append("\(name): there is no sample of \(type(of: keyPath).valueType)")
        }
        set(property, on: model, to: sample, name: name)
    }

    /// Sets an attribute to nil and reads it back.
    func setNil(_ keyPath: AnyKeyPath, on model: AnyModel, name: String) {
        guard let property = writable(keyPath, name: name) else { return }
        guard let empty = property.emptyValue else { return failures.append("\(name) cannot be nil") }
        set(property, on: model, to: empty, name: name)
    }

    private func writable(_ keyPath: AnyKeyPath, name: String) -> (any WritableProperty)? {
        let property = keyPath as? any WritableProperty
        if property == nil { notes.insert("\(name) is a constant: only its initial value is compared") }
        return property
    }

    private func set(_ property: any WritableProperty, on model: AnyModel, to value: Any, name: String) {
        guard property.set(value, on: model) else { return failures.append("\(name) cannot be set to \(value)") }
        let found = property.value(of: model)
        if !isSame(found, value) { failures.append("\(name): set to \(value), read \(found)") }
    }

    /// Sets a relationship.
    func set(_ keyPath: AnyKeyPath, on model: AnyModel, to others: [AnyModel]) throws {
        guard let property = keyPath as? any WritableProperty,
            property.set(others, on: model) || others.count == 1 && property.set(others[0], on: model)
                || property.set(Set(others.map { AnyHashable($0) }), on: model)
        else { throw LayerError("\(keyPath) cannot be set to \(others)") }
    }

    /// Relates an object to new ones, and adds a check of both ends.
    func relate<T: StrataSwiftData.PersistentModel>(
        _ model: T, by relationship: Schema.Relationship, keyPath: AnyKeyPath
    ) throws {
        let others = try (0..<(relationship.maximumModelCount == 1 ? 1 : 2)).map { _ in try makeDestination(of: relationship) }
        try set(keyPath, on: model, to: others)
        try check(model, relationship: relationship, keyPath: keyPath, has: others)
    }

    /// Adds a check that the attributes of an object in another context are those that it has now.
    func check<T: StrataSwiftData.PersistentModel>(
        _ model: T, attributes: [(keyPath: AnyKeyPath, attribute: Schema.Attribute)], after action: String
    ) {
        let id = model.persistentModelID
        let values = attributes.map { value(of: model, at: $0.keyPath) }
        checks.append { context in
            guard let other = context.model(for: id) as? T else { return ["\(id) was not found after \(action)"] }
            return zip(attributes, values).compactMap { property, written in
                let found = value(of: other, at: property.keyPath)
                return isSame(found, written)
                    ? nil : "\(T.entityName).\(property.attribute.name) after \(action): wrote \(written), read \(found)"
            }
        }
    }

    /// Checks that an object is related to others, and they to it, now and in another context.
    func check<T: StrataSwiftData.PersistentModel>(
        _ model: T, relationship: Schema.Relationship, keyPath: AnyKeyPath, has others: [AnyModel]
    ) throws {
        let (id, ids) = (model.persistentModelID, Set(others.map { identifier(of: $0) }))
        let inverse = models[relationship.destination]?.columnsByKeyPath.first { $0.value == relationship.inverseName }?.key
        let check: Check = { context in
            guard let model = context.model(for: id) as? T else { return ["\(id) was not found"] }
            let found = related(model, by: keyPath)
            let isSame = found.count == ids.count && Set(found.map { identifier(of: $0) }) == ids
            let isBack = inverse.map { inverse in
                found.allSatisfy { related($0, by: inverse).contains { identifier(of: $0) == id } }
            }
            return (isSame ? [] : ["\(T.entityName).\(relationship.name): wrote \(ids), read \(found)"])
                + (isBack == false ? ["\(T.entityName).\(relationship.name) is not found at its inverse"] : [])
        }
        failures += try check(context)
        checks.append(check)
    }
}

private func value(of model: AnyModel, at keyPath: AnyKeyPath) -> Any { (model as Any)[keyPath: keyPath] as Any }

private func identifier(of model: some StrataSwiftData.PersistentModel) -> PersistentIdentifier { model.persistentModelID }

/// Returns the objects of a relationship.
func related(_ model: AnyModel, by keyPath: AnyKeyPath) -> [AnyModel] { models(in: value(of: model, at: keyPath)) }

/// Returns the models in a value: a model, an optional, an array or a set.
private func models(in value: Any) -> [AnyModel] {
    if let model = value as? AnyModel { return [model] }
    return Mirror(reflecting: value).children.flatMap { models(in: $0.value) }
}

private func isNil(_ value: Any) -> Bool {
    let mirror = Mirror(reflecting: value)
    return mirror.displayStyle == .optional && (mirror.children.first.map { isNil($0.value) } ?? true)
}

/// Returns whether two values are equal, or encoded alike if their type has no equality.
private func isSame(_ a: Any, _ b: Any) -> Bool {
    func isEqual<E: Equatable>(_ a: E) -> Bool { a == b as? E }
    func encoded<E: Encodable>(_ value: E) -> Data? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try? encoder.encode(value)
    }
    if isNil(a) || isNil(b) { return isNil(a) && isNil(b) }
    if let a = a as? any Equatable { return isEqual(a) }
    guard let a = a as? any Encodable, let b = b as? any Encodable, let data = encoded(a) else { return false }
    return data == encoded(b)
}
