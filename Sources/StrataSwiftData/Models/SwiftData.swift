#if !canImport(SwiftData)
    /// The types of this module under the name of Apple's module, for sources that qualify a type with it.
    ///
    /// The macros have no such names: write `@Model`, not `@SwiftData.Model`. Where Apple's module exists, its own name is used.
    ///
    /// ```swift
    /// let schema = SwiftData.Schema([Trip.self])
    /// let configuration = SwiftData.ModelConfiguration(schema: schema, isStoredInMemoryOnly: true)
    /// let trips = try SwiftData.ModelContainer(for: schema, configurations: configuration)
    /// ```
    public enum SwiftData {
        /// The type of this name, outside of this namespace.
        public typealias DefaultHistoryDelete = StrataSwiftData.DefaultHistoryDelete
        /// The type of this name, outside of this namespace.
        public typealias DefaultHistoryInsert = StrataSwiftData.DefaultHistoryInsert
        /// The type of this name, outside of this namespace.
        public typealias DefaultHistoryToken = StrataSwiftData.DefaultHistoryToken
        /// The type of this name, outside of this namespace.
        public typealias DefaultHistoryTransaction = StrataSwiftData.DefaultHistoryTransaction
        /// The type of this name, outside of this namespace.
        public typealias DefaultHistoryUpdate = StrataSwiftData.DefaultHistoryUpdate
        /// The type of this name, outside of this namespace.
        public typealias DefaultSerialModelExecutor = StrataSwiftData.DefaultSerialModelExecutor
        /// The type of this name, outside of this namespace.
        public typealias FetchDescriptor = StrataSwiftData.FetchDescriptor
        /// The type of this name, outside of this namespace.
        public typealias FetchResultsCollection = StrataSwiftData.FetchResultsCollection
        /// The type of this name, outside of this namespace.
        public typealias HistoryChange = StrataSwiftData.HistoryChange
        /// The type of this name, outside of this namespace.
        public typealias HistoryDelete = StrataSwiftData.HistoryDelete
        /// The type of this name, outside of this namespace.
        public typealias HistoryDescriptor = StrataSwiftData.HistoryDescriptor
        /// The type of this name, outside of this namespace.
        public typealias HistoryInsert = StrataSwiftData.HistoryInsert
        /// The type of this name, outside of this namespace.
        public typealias HistoryObserver = StrataSwiftData.HistoryObserver
        /// The type of this name, outside of this namespace.
        public typealias HistoryToken = StrataSwiftData.HistoryToken
        /// The type of this name, outside of this namespace.
        public typealias HistoryTombstone = StrataSwiftData.HistoryTombstone
        /// The type of this name, outside of this namespace.
        public typealias HistoryTransaction = StrataSwiftData.HistoryTransaction
        /// The type of this name, outside of this namespace.
        public typealias HistoryUpdate = StrataSwiftData.HistoryUpdate
        /// The type of this name, outside of this namespace.
        public typealias MigrationStage = StrataSwiftData.MigrationStage
        /// The type of this name, outside of this namespace.
        public typealias ModelActor = StrataSwiftData.ModelActor
        /// The type of this name, outside of this namespace.
        public typealias ModelConfiguration = StrataSwiftData.ModelConfiguration
        /// The type of this name, outside of this namespace.
        public typealias ModelContainer = StrataSwiftData.ModelContainer
        /// The type of this name, outside of this namespace.
        public typealias ModelContext = StrataSwiftData.ModelContext
        /// The type of this name, outside of this namespace.
        public typealias ModelExecutor = StrataSwiftData.ModelExecutor
        /// The type of this name, outside of this namespace.
        public typealias PersistentIdentifier = StrataSwiftData.PersistentIdentifier
        /// The type of this name, outside of this namespace.
        public typealias PersistentModel = StrataSwiftData.PersistentModel
        /// The type of this name, outside of this namespace.
        public typealias ResultsObserver = StrataSwiftData.ResultsObserver
        /// The type of this name, outside of this namespace.
        public typealias ResultsSection = StrataSwiftData.ResultsSection
        /// The type of this name, outside of this namespace.
        public typealias Schema = StrataSwiftData.Schema
        /// The type of this name, outside of this namespace.
        public typealias SchemaMigrationPlan = StrataSwiftData.SchemaMigrationPlan
        /// The type of this name, outside of this namespace.
        public typealias SchemaProperty = StrataSwiftData.SchemaProperty
        /// The type of this name, outside of this namespace.
        public typealias SectionedResults = StrataSwiftData.SectionedResults
        /// The type of this name, outside of this namespace.
        public typealias SerialModelExecutor = StrataSwiftData.SerialModelExecutor
        /// The type of this name, outside of this namespace.
        public typealias SwiftDataError = StrataSwiftData.SwiftDataError
        /// The type of this name, outside of this namespace.
        public typealias VersionedSchema = StrataSwiftData.VersionedSchema
    }
#endif
