/// A Core Data file with cars, sport cars and trucks in one table: relationships of a root, to a sub-entity, of a sub-entity, one to one,
/// many to many and ordered, and attributes of one name in two sub-entities.
public enum CoreDataGarage {
    /// The tables that every file of Core Data has.
    public static let header = """
        CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);
        CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);
        CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB);

        """

    public static var model: CoreDataModelCache {
        var model = CoreDataModelCache()
        model.add(
            "Vehicle", isAbstract: true,
            [.attribute("name", 700, isOptional: false), .toOne("owner", to: "Person", inverse: "vehicles")])
        model.add(
            "Car", superentity: "Vehicle",
            [
                .attribute("doors", 100, isOptional: false), .attribute("size", 100), .attribute("color", 700),
                .toMany("fans", to: "Person", inverse: "favorite"),
            ])
        model.add("SportCar", superentity: "Car", [.toOne("engine", to: "Engine", inverse: "car")])
        model.add(
            "Truck", superentity: "Vehicle",
            [
                .attribute("size", 700), .attribute("load", 500), .attribute("color", 700),
                .toMany("routes", to: "Route", inverse: "trucks"),
            ])
        model.add(
            "Person",
            [
                .attribute("name", 700, isOptional: false), .toMany("vehicles", to: "Vehicle", inverse: "owner", isOrdered: true),
                .toOne("favorite", to: "Car", inverse: "fans"),
            ])
        model.add("Engine", [.attribute("power", 300, isOptional: false), .toOne("car", to: "SportCar", inverse: "engine")])
        model.add("Route", [.attribute("title", 700), .toMany("trucks", to: "Truck", inverse: "routes")])
        return model
    }

    /// The file as SQL. Two cars, a truck and a sport car of two persons.
    public static func tables(_ model: CoreDataModelCache?) -> String {
        header + (model.map { "INSERT INTO Z_MODELCACHE VALUES (\($0.sqlLiteral));" } ?? "") + """
            INSERT INTO Z_PRIMARYKEY VALUES (1, 'Vehicle', 0, 4), (2, 'Car', 1, 0), (3, 'SportCar', 2, 0), (4, 'Truck', 1, 0),
                (5, 'Person', 0, 2), (6, 'Engine', 0, 1), (7, 'Route', 0, 2);
            CREATE TABLE ZVEHICLE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZOWNER INTEGER, Z_FOK_OWNER INTEGER,
                ZDOORS INTEGER, ZSIZE INTEGER, ZENGINE INTEGER, ZLOAD FLOAT, ZNAME VARCHAR, ZCOLOR VARCHAR, ZSIZE1 VARCHAR,
                ZCOLOR1 VARCHAR);
            CREATE TABLE ZPERSON (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZFAVORITE INTEGER, Z2_FAVORITE INTEGER,
                ZNAME VARCHAR);
            CREATE TABLE ZENGINE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPOWER INTEGER, ZCAR INTEGER);
            CREATE TABLE ZROUTE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTITLE VARCHAR);
            CREATE TABLE Z_4ROUTES (Z_4TRUCKS INTEGER, Z_7ROUTES INTEGER, PRIMARY KEY (Z_4TRUCKS, Z_7ROUTES));
            CREATE TABLE Z_99OTHERS (Z_99A INTEGER, Z_98B INTEGER);
            CREATE INDEX ZVEHICLE_ZOWNER_INDEX ON ZVEHICLE (ZOWNER);
            INSERT INTO ZVEHICLE VALUES (1, 2, 1, 1, 1024, 4, 3, NULL, NULL, 'Golf', 'red', NULL, NULL),
                (2, 4, 1, 1, 2048, NULL, NULL, NULL, 7.5, 'Actros', NULL, 'XL', 'blue'),
                (3, 3, 1, 2, 1024, 2, 5, 1, NULL, 'Alpine', NULL, NULL, NULL),
                (4, 2, 1, NULL, NULL, 5, NULL, NULL, NULL, 'Panda', 'green', NULL, NULL);
            INSERT INTO ZPERSON VALUES (1, 5, 1, 3, 3, 'Ann'), (2, 5, 1, 1, 2, 'Bob');
            INSERT INTO ZENGINE VALUES (1, 6, 1, 300, 3);
            INSERT INTO ZROUTE VALUES (1, 7, 1, 'A1'), (2, 7, 1, 'A2');
            INSERT INTO Z_4ROUTES VALUES (2, 1), (2, 2);

            """
    }
}
