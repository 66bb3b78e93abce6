extension EntityDescription {
    /// Checks that properties have columns, for the `@Model` macro, which counts columns in the source.
    ///
    /// - Precondition: None of the properties is a relationship to many objects, which has no column. An alias of an array of models
    ///   would hide one from the macro.
    public func requireColumns(of names: Set<String>) {
        for case .relationship(let relationship) in properties where names.contains(relationship.name) {
            precondition(
                relationship.cardinality == .toOne,
                "cannot describe \(name).\(relationship.name): its type hides an array of models behind another name. Write the type "
                    + "as an array, so that @Model can count the columns.")
        }
    }
}
