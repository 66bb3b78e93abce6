import Observation
import StoreInterface
import StoreModel

/// A property of an object, as observers identify it.
enum ObservedProperty: Hashable {
    /// An attribute or a to-one relationship, by column.
    case column(ColumnIndex)
    /// A to-many relationship, by its number among the relationships.
    case toMany(Int)
    /// ``ManagedObject/isDeleted``
    case isDeleted

    /// The key path that represents the property in the registrars of all objects, whatever their entity.
    var keyPath: KeyPath<ManagedObject, Never?> {
        switch self {
        case .column(let column): Self.keyPaths[1 + column.rawValue]
        case .toMany(let relationship):
            Self.keyPaths[min(1 + EntitySchema.maximumColumns + relationship, Self.keyPaths.count - 1)]
        case .isDeleted: Self.keyPaths[0]
        }
    }

    /// Relationships after the last share a key path.
    private static let keyPaths = (0..<2 * EntitySchema.maximumColumns).map { \ManagedObject[observed: $0] }
}

extension ManagedObject: Observable {
    /// Exists so that each property has a key path. Never called.
    fileprivate subscript(observed number: Int) -> Never? { nil }
}

/// The observers of one object. Created when a property of the object is first read inside `withObservationTracking`.
final class ObservedObject {
    private let registrar = ObservationRegistrar()
    /// The columns that were read.
    private(set) var columns = ColumnSet()
    /// The numbers of the to-many relationships that were read.
    private(set) var relationships: [Int] = []
    private var readsDeletion = false
    /// The properties that observers were notified of in the present group of changes.
    private var announced: [ObservedProperty] = []
    /// The numbers by which properties of a detached object of a hierarchy were read, by their present numbers.
    private var former: [ObservedProperty: ObservedProperty] = [:]

    /// Gives the properties that were read the numbers that they have in a context.
    func renumber(_ entity: Entity, _ inheritance: Inheritance) {
        let read = properties
        (columns, relationships) = (ColumnSet(), [])
        for property in read {
            let present: ObservedProperty
            switch property {
            case .column(let column):
                present = .column(inheritance.properties[column])
                columns.insert(inheritance.properties[column])
            case .toMany(let position):
                present = .toMany(entity.relationships[position].number)
                relationships.append(entity.relationships[position].number)
            case .isDeleted: present = property
            }
            if present != property { former[present] = property }
        }
    }

    /// Records a read of a property, if the calling code is tracked.
    func access(_ property: ObservedProperty, of object: ManagedObject) {
        switch property {
        case .column(let column): columns.insert(column)
        case .toMany(let number): if !relationships.contains(number) { relationships.append(number) }
        case .isDeleted: readsDeletion = true
        }
        registrar.access(object, keyPath: property.keyPath)
    }

    /// All properties that were read.
    var properties: [ObservedProperty] {
        var all = relationships.map(ObservedProperty.toMany)
        columns.forEach { all.append(.column($0)) }
        if readsDeletion { all.append(.isDeleted) }
        return all
    }

    private func isRead(_ property: ObservedProperty) -> Bool {
        switch property {
        case .column(let column): columns.contains(column)
        case .toMany(let number): relationships.contains(number)
        case .isDeleted: readsDeletion
        }
    }

    /// Notifies observers before a property changes, once per group of changes. Returns whether this is the first notification of the
    /// object in its group.
    func willSet(_ property: ObservedProperty, of object: ManagedObject) -> Bool {
        guard isRead(property), !announced.contains(property) else { return false }
        announced.append(property)
        let isFirst = announced.count == 1
        registrar.willSet(object, keyPath: property.keyPath)
        if let former = former[property] { registrar.willSet(object, keyPath: former.keyPath) }
        return isFirst
    }

    /// Notifies observers after the announced properties have changed, at the end of the group.
    func didSet(of object: ManagedObject) {
        let changed = announced
        announced = []
        for property in changed {
            registrar.didSet(object, keyPath: property.keyPath)
            if let former = former[property] { registrar.didSet(object, keyPath: former.keyPath) }
        }
    }
}
