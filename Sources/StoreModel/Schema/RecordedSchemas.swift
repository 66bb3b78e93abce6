/// The schemas that a file has recorded, which decide whether a model may open it.
package struct RecordedSchemas: Sendable {
    /// The schema of the file.
    package var current: StoreSchema
    /// The schemas before it, in any order. A model of the same version that has one of them is older than the file.
    package var earlier: [StoreSchema] = []
    /// The exchanges of names that the file has carried out for its schema.
    package var exchanged = ExchangedNames()
    /// The inverses of the model that wrote the file; nil if the file has not recorded them.
    package var inverses: InversePairs?
    /// The narrowed destinations of the model that wrote the file; nil if it had none, or if the file has not recorded them.
    package var destinations: NarrowedDestinations?

    package init(
        _ current: StoreSchema, earlier: [StoreSchema] = [], exchanged: ExchangedNames = ExchangedNames(),
        inverses: InversePairs? = nil, destinations: NarrowedDestinations? = nil
    ) {
        self.current = current
        self.earlier = earlier
        self.exchanged = exchanged
        self.inverses = inverses
        self.destinations = destinations
    }

    /// Whether the file had the model's schema before its present one, at the same version. Keyed values and the progress of derived
    /// values do not count.
    package func isAfter(_ model: StoreSchema) -> Bool {
        func plain(_ schema: StoreSchema) -> StoreSchema { schema.withoutKeyedValues.withoutPendingDerivations }
        let wanted = plain(model.withoutHints)
        return wanted.version == current.version && plain(current) != wanted && earlier.contains { plain($0) == wanted }
    }
}
