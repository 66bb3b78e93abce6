import StoreInterface

extension Entity {
    /// Returns the column of a property that batches may set.
    ///
    /// One end of a one-to-one relationship is refused, because its other end is a column of another row, which a batch does not write.
    func batchColumn(named name: String, in model: Model) throws -> Int {
        guard let column = column(named: name) else { throw FetchError.unknownProperty(entity: self.name, property: name) }
        if let relationship = relationship(named: name), let inverse = relationship.inverse,
            case .toOne = model.entities[relationship.destination].relationships[inverse].kind
        {
            throw BatchError.oneToOne(entity: self.name, property: name)
        }
        return column
    }
}
