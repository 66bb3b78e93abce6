/// The model class and the number of destinations of a relationship, by the type of its property.
struct RelationshipType {
    let model: any PersistentModel.Type
    let isToMany: Bool

    /// Reads a type: a model, an optional of one, an array, an optional array or a set. Returns nil for an attribute.
    init?(_ type: Any.Type) {
        var type = type
        if let optional = type as? any OptionalType.Type { type = optional.wrapped }
        let collection = type as? any CollectionType.Type
        guard let model = (collection?.element ?? type) as? any PersistentModel.Type else { return nil }
        self.model = model
        isToMany = collection != nil
    }
}

/// An optional, whose wrapped type is read at run time.
protocol OptionalType {
    static var wrapped: Any.Type { get }
}

extension Optional: OptionalType {
    static var wrapped: Any.Type { Wrapped.self }
}

/// A collection of a relationship, whose element is read at run time.
private protocol CollectionType {
    static var element: Any.Type { get }
}

extension Array: CollectionType {
    fileprivate static var element: Any.Type { Element.self }
}

extension Set: CollectionType {
    fileprivate static var element: Any.Type { Element.self }
}
