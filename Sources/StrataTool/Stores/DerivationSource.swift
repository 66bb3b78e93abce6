import ObjectGraph
import StoreInterface
import StoreModel

/// The annotation of a derived attribute in the source of a model class.
struct DerivationSource {
    private let model: Model
    private let entity: Entity
    private let derivation: ColumnDerivation

    /// - Parameters:
    ///   - model: The model that has the entity.
    ///   - entity: The entity with the attribute.
    ///   - derivation: The derivation of the attribute.
    init(_ model: Model, entity: Entity, derivation: ColumnDerivation) {
        (self.model, self.entity, self.derivation) = (model, entity, derivation)
    }

    /// The annotation, with a space after it.
    func text() throws -> String {
        let function = derivation.function
        switch function {
        case .value: return "@Derived(from: \(try path())) "
        case .count: return "@Derived(count: \(try relationship())) "
        case .sum, .minimum, .maximum, .average:
            let far = model.entities[derivation.relation?.entity ?? entity.number]
            return "@Derived(\(function.rawValue): \(try attribute(of: far)), in: \(try relationship())) "
        case .lowercased, .folded: return "@Derived(\(function.rawValue): \(try attribute(of: entity))) "
        }
    }

    /// The path through relationships to one object, to an attribute.
    private func path() throws -> String {
        var reached = model.entities[entity.number]
        var text = "\\" + (try ClassNames(model).quoted(entity.name))
        for column in derivation.path {
            guard let next = reached.relationships.first(where: { $0.kind == .toOne(column: column) }) else { break }
            text += ".\(try SwiftSource.pathName(next.name))?"
            reached = model.entities[next.destination]
        }
        return text + "." + (try name(ofColumnIn: reached))
    }

    private func relationship() throws -> String {
        let found = model.entities[entity.number].relationships.first { relationship in
            guard case .toMany(let relation) = relationship.kind else { return false }
            return relation == derivation.relation
        }
        return "\\\(try ClassNames(model).quoted(entity.name)).\(try SwiftSource.pathName(found?.name ?? ""))"
    }

    private func attribute(of far: Entity) throws -> String {
        "\\\(try ClassNames(model).quoted(far.name)).\(try name(ofColumnIn: far))"
    }

    private func name(ofColumnIn far: Entity) throws -> String {
        try SwiftSource.pathName(derivation.column.map { far.columns[$0].name } ?? "")
    }
}
