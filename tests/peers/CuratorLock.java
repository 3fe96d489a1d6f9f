// A lock of Apache Curator, driven by the lines of its standard input.
//   acquire   says "asking", and "held" when it has the lock
//   release   says "released"
// Arguments: servers, path of the lock, and "mutex", "read" or "write".
import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryOneTime;

public class CuratorLock {
  public static void main(String[] args) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(args[0], 30_000, 15_000, new RetryOneTime(100));
    client.start();
    InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, args[1]);
    InterProcessLock lock = args[2].equals("read") ? both.readLock()
        : args[2].equals("write") ? both.writeLock()
        : new InterProcessMutex(client, args[1]);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = lines.readLine()) != null; ) {
      if (line.equals("acquire")) {
        System.out.println("asking");
        lock.acquire();
        System.out.println("held");
      } else {
        lock.release();
        System.out.println("released");
      }
    }
    client.close();
  }
}
